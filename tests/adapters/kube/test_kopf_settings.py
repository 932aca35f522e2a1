"""Kopf set up for reading, and for nothing else."""

from itertools import islice

import kopf

from moorage.adapters.kube.kopf_settings import NoDiffBase, NoProgress, configure_kopf


def test_kopf_writes_nothing_and_reads_only_what_waits():
    settings = kopf.OperatorSettings()
    configure_kopf(settings, "spec.nodeName=", 42.0)
    assert not settings.posting.enabled
    assert settings.peering.standalone
    assert settings.scanning.disabled
    assert settings.watching.inactivity_timeout == 42.0
    assert len(settings.watching.field_selectors) == 1
    assert settings.watching.field_selectors["", "v1", "pods"] == "spec.nodeName="


def test_the_api_server_is_waited_for_without_end():
    settings = kopf.OperatorSettings()
    configure_kopf(settings, "", 42.0)
    backoffs = settings.networking.error_backoffs
    assert not isinstance(backoffs, float)
    assert list(islice(backoffs, 6)) == [0.2, 0.5, 1.0, 2.0, 2.0, 2.0]
    assert list(islice(backoffs, 1)) == [0.2], "each request begins anew"


def test_no_state_is_kept_in_pods():
    body = kopf.Body({"metadata": {"annotations": {"x": "y"}}})
    patch = kopf.Patch()
    diff_base, progress = NoDiffBase(), NoProgress()
    essence = diff_base.build(body=body)
    diff_base.store(body=body, patch=patch, essence=essence)
    progress.store(key="k", record={}, body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    progress.purge(key="k", body=body, patch=patch)
    assert (essence, diff_base.fetch(body=body), progress.fetch(key="k", body=body)) == ({}, None, None)
    assert progress.clear(essence=essence) is essence
    assert not patch
