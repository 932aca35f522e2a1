"""Where an extender is and how it is spoken to, as the configuration says."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from moorage.core.model.extender import Extender, Verb

#: kube-scheduler's, for an extender whose configuration names none.
DEFAULT_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Tls:
    """``tlsConfig``; data goes before files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ExtenderEndpoint:
    """An extender and the way to it.  ``paths`` are the URLs' last parts by verb; ``bind_path`` is that of bind."""

    extender: Extender
    paths: dict[Verb, str] = field(default_factory=dict)
    bind_path: str = ""
    timeout: float = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    https: bool = False
    tls: Tls | None = None

    def url(self, path: str) -> str:
        """Where a verb is called."""
        return f"{self.extender.name.rstrip('/')}/{path}"

    def ssl_context(self) -> ssl.SSLContext:
        """How a TLS server is checked, and who we are to it; reads files.  Raises OSError and ValueError.

        As in kube-scheduler, ``enableHTTPS`` without a certificate authority means that the server is not checked.
        """
        tls = self.tls or Tls()
        authority = bool(tls.ca_file or tls.ca_data)
        context = ssl.create_default_context(
            cafile=None if tls.ca_data else tls.ca_file or None,
            cadata=tls.ca_data.decode("ascii") if tls.ca_data else None,
        )
        if tls.insecure or (self.https and not authority):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert_data or tls.cert_file:
            with tempfile.TemporaryDirectory(prefix="moorage-") as folder:  # only readable by us
                certificate = _file(tls.cert_data, tls.cert_file, Path(folder, "certificate")) or ""
                context.load_cert_chain(certificate, _file(tls.key_data, tls.key_file, Path(folder, "key")))
        return context


def _file(data: bytes, file: str, place: Path) -> str | None:
    if not data:
        return file or None
    place.write_bytes(data)
    return str(place)
