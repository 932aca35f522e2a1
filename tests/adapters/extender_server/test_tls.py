"""The server's certificate: renewed without a restart."""

import asyncio
import shutil
import ssl

import pytest

from moorage.adapters.extender_server import tls
from moorage.adapters.extender_server.tls import TlsFiles
from tests.controlplane.certs import Authority


def make_files(folder):
    authority = Authority(folder)
    pairs = [authority.issue(name, hosts=("127.0.0.1",)) for name in ("one", "two")]
    cert, key = folder / "tls.crt", folder / "tls.key"
    shutil.copy(pairs[0].certificate, cert)
    shutil.copy(pairs[0].key, key)
    return authority, pairs, TlsFiles(str(cert), str(key))


@pytest.mark.looptime
async def test_a_renewed_certificate_is_loaded(tmp_path, monkeypatch, caplog):
    _, pairs, files = make_files(tmp_path)
    context = files.context()
    loaded = []
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda self, *paths: loaded.append(paths))
    following = asyncio.ensure_future(files.follow(context))
    await asyncio.sleep(3 * tls._LOOK_AGAIN)
    assert loaded == []
    shutil.copy(pairs[1].certificate, files.cert)
    shutil.copy(pairs[1].key, files.key)
    await asyncio.sleep(2 * tls._LOOK_AGAIN)
    assert loaded == [(files.cert, files.key)]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


@pytest.mark.looptime
async def test_a_broken_one_changes_nothing(tmp_path, caplog):
    _, _, files = make_files(tmp_path)
    context = files.context()
    following = asyncio.ensure_future(files.follow(context))
    await asyncio.sleep(0)
    (tmp_path / "tls.crt").write_text("nonsense")
    await asyncio.sleep(2 * tls._LOOK_AGAIN)
    assert "the old one stays" in caplog.text
    (tmp_path / "tls.crt").unlink()
    await asyncio.sleep(2 * tls._LOOK_AGAIN)
    assert not following.done()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        TlsFiles(str(tmp_path / "a"), str(tmp_path / "b")).context()
