# Makes a cluster of nodes; for tests/with-broker.
# shellcheck shell=bash disable=SC2154 # variables of with-broker

cluster_conf() {
  local number
  echo "cluster_formation.peer_discovery_backend = classic_config"
  for number in $(numbers); do
    echo "cluster_formation.classic_config.nodes.$number = $cluster-$number@localhost"
  done
}

# All at once, as each waits for the others.
start_cluster() {
  local number
  for number in $(numbers); do launch_node "$number"; done
  for number in $(numbers); do await_node "$number"; done
  ctl --quiet await_online_nodes "$nodes" --timeout 60
}
