"""What ran where: the catalogue, sites, nodes, devices, runs, dated assignments."""
