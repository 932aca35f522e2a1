"""Clusters and pods with the placements and texts that are right; no control plane is needed."""
