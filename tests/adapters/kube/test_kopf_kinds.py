"""What Kopf is told of the policies' kinds."""

import pytest
from yarl import URL

from moorage.adapters.kube.kopf_kinds import empty_list, is_discovery, is_refusal, with_policies

APIS = URL("https://proxy/clusters/one/apis")
VERSION = URL("https://proxy/clusters/one/apis/moorage.dev/v1alpha1")
PODS = URL("https://host/api/v1/pods")
POLICIES = URL("https://host/apis/moorage.dev/v1alpha1/clusterschedulingpolicies?watch=true")


@pytest.mark.parametrize(
    ("url", "status", "discovery", "refusal"),
    [
        (APIS, 200, True, False),
        (APIS, 403, False, False),
        (VERSION, 200, True, False),
        (VERSION, 404, True, False),
        (VERSION, 503, False, False),
        (POLICIES, 200, False, False),
        (POLICIES, 403, False, True),
        (POLICIES, 404, False, True),
        (POLICIES, 429, False, True),
        (POLICIES, 500, False, False),
        (PODS, 404, False, False),
    ],
)
def test_which_answers_are_changed(url, status, discovery, refusal):
    assert (is_discovery(url, status), is_refusal(url, status)) == (discovery, refusal)


def test_a_group_that_is_served_is_left_as_it_is():
    version = {"groupVersion": "moorage.dev/v1alpha1", "version": "v1alpha1"}
    answer = {"groups": [{"name": "moorage.dev", "versions": [version], "preferredVersion": version}]}
    assert with_policies(APIS, answer) == answer


def test_a_group_of_other_versions_gets_ours():
    version = {"groupVersion": "moorage.dev/v1", "version": "v1"}
    answer = {"groups": [{"name": "moorage.dev", "versions": [version], "preferredVersion": version}]}
    (group,) = with_policies(APIS, answer)["groups"]
    assert [each["version"] for each in group["versions"]] == ["v1", "v1alpha1"]
    assert group["preferredVersion"] == version


def test_a_kind_that_is_served_is_left_as_it_is():
    served = {"name": "schedulingpolicies", "kind": "SchedulingPolicy", "shortNames": ["schedpol"]}
    resources = with_policies(VERSION, {"resources": [served]})["resources"]
    assert [each["name"] for each in resources] == ["schedulingpolicies", "clusterschedulingpolicies"]
    assert resources[0] is served


def test_a_refusal_is_not_taken_for_a_document():
    status = {"kind": "Status", "groups": None}
    assert len(with_policies(VERSION, status)["resources"]) == 2
    assert "kind" not in with_policies(VERSION, status)


def test_the_empty_list_can_be_watched_on_from():
    assert empty_list()["metadata"]["resourceVersion"] == "0"
