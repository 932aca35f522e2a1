"""``extenders``: HTTP extenders, and what they change in every profile."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from moorage.adapters.extender.endpoint import DEFAULT_TIMEOUT, ExtenderEndpoint, Tls
from moorage.adapters.kube.fields import INT64
from moorage.adapters.kube.resource_lists import is_qualified_name
from moorage.configuration.section import Section
from moorage.core.model.extender import Extender, Verb
from moorage.core.model.resources import is_extended
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.profile import Profile

_VERBS: Final = {
    Verb.FILTER: "filterVerb",
    Verb.PRIORITIZE: "prioritizeVerb",
    Verb.PREEMPT: "preemptVerb",
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


def read_extenders(top: Section) -> list[ExtenderEndpoint]:
    """The extenders in the order in which they are asked: those whose failures are skipped come last."""
    endpoints = []
    managed: set[str] = set()
    for number, section in enumerate(top.sections("extenders")):
        endpoints.append(_endpoint(section, number, managed))
    binders = sum(bool(endpoint.bind_path) for endpoint in endpoints)
    if binders > 1:
        top.report("extenders", f"only one extender can bind, but {binders} have a bindVerb")
    return sorted(endpoints, key=lambda endpoint: endpoint.extender.ignorable)


def with_extenders(
    profiles: Sequence[Profile], top: Section, endpoints: Sequence[ExtenderEndpoint]
) -> list[Profile]:
    """The profiles with these extenders, and without the resources in fit that an extender alone looks after."""
    ignored = frozenset(
        resource.text("name")
        for section in top.sections("extenders")
        for resource in section.sections("managedResources")
        if resource.get("ignoredByScheduler") is True
    )
    extenders = tuple(endpoint.extender for endpoint in endpoints)

    def changed(profile: Profile) -> Profile:
        plugins = tuple(
            replace(p, ignored=ignored) if ignored and isinstance(p, NodeResourcesFit) else p
            for p in profile.plugins
        )
        return replace(profile, plugins=plugins, extenders=extenders)

    return [changed(profile) for profile in profiles]


def _endpoint(section: Section, number: int, managed: set[str]) -> ExtenderEndpoint:
    section.only(
        "urlPrefix",
        *_VERBS.values(),
        *("weight", "bindVerb", "enableHTTPS", "tlsConfig", "httpTimeout", "nodeCacheCapable"),
        *("managedResources", "ignorable"),
    )
    url = section.text("urlPrefix")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        section.report("urlPrefix", f"must be an http or https URL, not {url!r}")
    paths = {verb: path for verb, key in _VERBS.items() if (path := section.text(key))}
    weight = section.whole("weight", INT64)
    if Verb.PRIORITIZE in paths and weight <= 0:
        section.report("weight", f"must be positive where there is a prioritizeVerb, not {weight}")
    extender = Extender(
        name=url,
        number=number,
        verbs=frozenset(paths),
        binds="bindVerb" in section and bool(section.text("bindVerb")),
        weight=weight,
        ignorable=section.flag("ignorable"),
        managed=frozenset(_managed(section, managed)),
    )
    return ExtenderEndpoint(
        extender,
        paths,
        section.text("bindVerb"),
        _timeout(section),
        section.flag("nodeCacheCapable"),
        section.flag("enableHTTPS"),
        _tls(section.section("tlsConfig")) if "tlsConfig" in section else None,
    )


def _managed(section: Section, seen: set[str]) -> list[str]:
    names = []
    for resource in section.sections("managedResources"):
        resource.only("name", "ignoredByScheduler")
        resource.flag("ignoredByScheduler")
        name = resource.text("name")
        if not is_qualified_name(name) or not is_extended(name):
            resource.report("name", f"{name!r} is not the name of an extended resource")
        elif name in seen:
            resource.report("name", f"{name!r} is managed twice")
        seen.add(name)
        names.append(name)
    return names


def _timeout(section: Section) -> float:
    """``httpTimeout`` as Go writes durations: 500ms, 1m30s, 0."""
    text = section.text("httpTimeout")
    if text in ("", "0"):
        return DEFAULT_TIMEOUT
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        section.report("httpTimeout", f"must be a duration such as 500ms or 5s, not {text!r}")
        return DEFAULT_TIMEOUT
    return sum(float(number) * _UNITS[unit] for number, unit in parts) or DEFAULT_TIMEOUT


def _tls(section: Section) -> Tls:
    files = ("certFile", "keyFile", "caFile")
    data = ("certData", "keyData", "caData")
    section.only("insecure", "serverName", *files, *data)
    insecure = section.flag("insecure")
    cert, key, ca = (section.text(each) for each in files)
    cert_data, key_data, ca_data = (_bytes(section, each) for each in data)
    if insecure and (ca or ca_data):
        section.report(
            "insecure", "does not go with a certificate authority: there is nothing to check by it"
        )
    if bool(cert or cert_data) != bool(key or key_data):
        section.report("", "a certificate needs its key, and a key its certificate")
    return Tls(insecure, section.text("serverName"), cert, key, ca, cert_data, key_data, ca_data)


def _bytes(section: Section, key: str) -> bytes:
    try:
        return base64.b64decode(section.text(key), validate=True)
    except (binascii.Error, ValueError):
        section.report(key, "must be base64")
        return b""
