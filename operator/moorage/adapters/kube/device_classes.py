"""DeviceClasses: whether the API server has them, and from JSON to as much of them as scheduling reads."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from moorage.adapters.kube.errors import NotFound
from moorage.adapters.kube.fields import Reader
from moorage.core.model.device_class import DeviceClass

if TYPE_CHECKING:  # the offline commands read objects, and need no client
    from moorage.adapters.kube.client import KubeClient

logger = logging.getLogger(__name__)

#: What is off without them, or without the right to see them.
DEVICE_CLASSES: Final = "device classes"
#: Served since Kubernetes v1.34.
DEVICE_CLASSES_PATH: Final = "/apis/resource.k8s.io/v1/deviceclasses"


async def serves_device_classes(client: KubeClient) -> bool:
    """Whether the API server has this API; if not, one warning says what that means.

    Raises the other ``KubeError`` of a server that cannot be asked.
    """
    try:
        await client.get(DEVICE_CLASSES_PATH, params={"limit": 1})
    except NotFound:
        logger.warning(
            "The API server has no DeviceClasses (resource.k8s.io/v1), so every extended resource counts as an "
            'ordinary one ("%s" is off)',
            DEVICE_CLASSES,
        )
        return False
    return True


def read_device_class(obj: Mapping[str, Any], reader: Reader) -> DeviceClass:
    """A DeviceClass; what cannot be read is reported to the ``Reader`` and counts as absent.

    Raises KeyError for an object without a name.
    """
    metadata = obj["metadata"]
    spec = reader.mapping(obj.get("spec"), "spec")
    return DeviceClass(
        name=metadata["name"],
        extended_resource=reader.text(spec.get("extendedResourceName"), "spec.extendedResourceName"),
        created=reader.time(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
    )
