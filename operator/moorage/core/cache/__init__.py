"""What we believe about the cluster: pods on nodes, confirmed or only assumed."""
