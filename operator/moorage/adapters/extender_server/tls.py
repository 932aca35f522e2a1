"""The server's certificate, and whom it lets in by theirs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 10.0


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM.  With ``client_ca`` every caller of a verb must show a certificate that it has signed."""

    cert: str
    key: str
    client_ca: str = ""

    def context(self) -> ssl.SSLContext:
        """Reads the files.  Raises OSError and ssl.SSLError.

        Certificates are asked for and not demanded in the handshake, since those who look at the server's health have
        none; whoever calls a verb without one is refused there.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.cert, self.key)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    async def follow(self, context: ssl.SSLContext) -> None:
        """Load a certificate that was renewed, for ever; what cannot be read changes nothing."""
        known = self._contents()
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            found = self._contents()
            if found == known or found is None:
                continue
            try:
                context.load_cert_chain(self.cert, self.key)
            except (OSError, ssl.SSLError) as error:
                logger.warning(
                    "The certificate in %s cannot be loaded, the old one stays: %s", self.cert, error
                )
            else:
                logger.info("The certificate in %s is new", self.cert)
                known = found

    def _contents(self) -> tuple[bytes, bytes] | None:
        try:
            return Path(self.cert).read_bytes(), Path(self.key).read_bytes()
        except OSError:
            return None
