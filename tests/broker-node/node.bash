# Starts and stops the node; for tests/with-broker and the programs that it makes.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of with-broker; quoted programs

# Starts a program in a session of its own, whose id goes to a file.
launch() {
  "${enter[@]}" sh -c 'rm -f "$HOME/$0.pid"' "$1"
  "${enter[@]}" setsid sh -c 'echo $$ >"$HOME/$0.pid"; exec "$@" >>"$HOME/$0.out" 2>&1' "$@" \
    </dev/null >"$private/launch.out" 2>&1 &
  disown
  until [ -s "$private/node/$1.pid" ] || [ ! -d "/proc/$!" ]; do sleep 0.02; done
}

session() { cat "$private/node/$1.pid" 2>/dev/null; }

running() {
  local id
  id=$(session "$1") || return
  [[ $("${enter[@]}" sh -c 'cat /proc/[0-9]*/stat' 2>/dev/null) =~ \)\ [^ZX]\ [0-9]+\ $id\  ]]
}

signal() { "${enter[@]}" sh -c 'kill -s "$1" -- "-$0"' "$(session "$1")" "$2"; }

gone() {
  while running "$1"; do sleep 0.05; done
}

accepts_amqp() (
  exec 3<>"/dev/tcp/127.0.0.1/$amqp_port" &&
    printf 'AMQP\0\0\11\1' >&3 && read -rN1 -t5 -u3
) 2>/dev/null

await_node() {
  local deadline=$((SECONDS + 60))
  until accepts_amqp; do
    if [ $SECONDS -ge $deadline ] || ! running node; then
      tail -n 30 "$private/launch.out" "$private"/node/{node.out,rabbit.log} >&2 2>/dev/null || true
      echo "with-broker: the RabbitMQ node did not start" >&2
      return 1
    fi
    sleep 0.2
  done
}

node() {
  case ${1:-} in
    start)
      if running node; then echo "the node is running already" >&2; return 1; fi
      launch node rabbitmq-server && await_node ;;
    stop) "${enter[@]}" rabbitmqctl --quiet stop && gone node ;;
    kill) if running node; then signal node KILL && gone node; fi ;;
    pause) signal node STOP ;;
    resume) signal node CONT ;;
    *) echo "Usage: \$RABBITMQ_NODE kill|stop|start|pause|resume" >&2; return 2 ;;
  esac
}
