# For tests that source it: HOSTS hosts as network namespaces $job-1, $job-2 ... around a router $job-r, itself a
# namespace, so that the machine's own network is not touched; veth is the one kind of device that is needed. Host H is
# 10.77.H.1 and fd77:0:0:H::1, and has one more interface that leads nowhere; with LINKS it has so many links, net,
# net1, ... to the router's ports portH, portH.1, ..., each in a network of its own, 10.77, 10.78, ... All is taken down
# at the end. Needs root, or a kernel that lets a user be root in a namespace of its own: there the test runs again.
if [ "$(id -u)" != 0 ] && unshare --user --map-root-user --net --mount true 2>/dev/null; then
    export GYRE_TEST_OWN_NAMESPACE=1
    exec unshare --user --map-root-user --net --mount bash "$0" "$@"
fi
if [ -n "${GYRE_TEST_OWN_NAMESPACE:-}" ]; then # where ip keeps its names; its /etc/netns
    mount -t tmpfs none /run && mkdir /run/netns /run/etc
    cp -rT /etc /run/etc 2>/dev/null || true # what this user may not read is not needed
    mkdir -p /run/etc/netns && mount --bind /run/etc /etc
fi
skip() { echo "skipped: $1"; [ "${GYRE_TEST_STRICT:-0}" != 1 ] || exit 1; exit 77; }
[ "$(id -u)" = 0 ] && ip netns add "gyre$$x" 2>/dev/null || skip "network namespaces need root, or user namespaces"
why=$(ip netns exec "gyre$$x" true 2>&1) && why= || why="no process can be in a network namespace here: ${why:-?}"
ip netns del "gyre$$x"
[ -z "$why" ] || skip "$why" # in a chroot whose root is no mount, say
job=gyre$$
pids=()
scratch=$(mktemp -d)

clean()
{
    trap - EXIT
    for pid in "${pids[@]}" ${watcher:+"$watcher"}; do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for name in $(ip netns list | awk -v job="$job-" 'index($1, job) == 1 {print $1}'); do
        ip netns del "$name"
        rm -rf "/etc/netns/${name:?}"
    done
    [ -z "${made_hosts:-}" ] || rm -f /etc/hosts
    rm -rf "$scratch" "$scratch-late"
}
trap clean EXIT
trap 'exit 1' INT TERM

add_link() # HOST NUMBER
{
    local ns=$job-$1 device=net$2 port=port$1.$2 network=10.$((77 + $2))
    ip -n "$ns" link add "$device" type veth peer name "$port" netns "$job-r"
    ip -n "$job-r" addr add "$network.$1.254/24" dev "$port"
    ip -n "$job-r" link set "$port" up
    ip -n "$ns" addr add "$network.$1.1/24" dev "$device"
    ip -n "$ns" link set "$device" up
    ip -n "$ns" route add "$network.0.0/16" via "$network.$1.254"
}

make_host() # NUMBER
{
    local host=$1 ns=$job-$1 link
    ip netns add "$ns"
    ip -n "$ns" link add net type veth peer name "port$host" netns "$job-r"
    ip -n "$job-r" addr add "10.77.$host.254/24" dev "port$host"
    ip -n "$job-r" addr add "fd77:0:0:$host::fe/64" dev "port$host" nodad
    ip -n "$job-r" link set "port$host" up
    ip -n "$ns" link set lo up
    ip -n "$ns" addr add "10.77.$host.1/24" dev net
    ip -n "$ns" addr add "fd77:0:0:$host::1/64" dev net nodad
    ip -n "$ns" link set net up
    ip -n "$ns" route add default via "10.77.$host.254"
    ip -n "$ns" -6 route add default via "fd77:0:0:$host::fe"
    for ((link = 1; link < ${LINKS:-1}; link++)); do add_link "$host" "$link"; done
    ip -n "$ns" link add nowhere type veth peer name silent
    ip -n "$ns" addr add 198.51.100.7/24 dev nowhere
    ip -n "$ns" addr add "fd99::7/64" dev nowhere nodad
    ip -n "$ns" link set silent up
    ip -n "$ns" link set nowhere up
}

# What host HOST's own files say: names for addresses, as in /etc/hosts.
name_host() # HOST ADDRESS NAME ...
{
    mkdir -p "/etc/netns/$job-$1"
    [ -e /etc/hosts ] || { made_hosts=1 && : >/etc/hosts; } # ip binds the host's file over it
    printf '127.0.0.1 localhost\n%s\n' "${*:2}" >"/etc/netns/$job-$1/hosts"
}

ip netns add "$job-r"
ip netns exec "$job-r" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
for ((i = 1; i <= HOSTS; i++)); do make_host "$i"; done

# Records from now on, once per 50 ms, how much later than asked for this machine resumes a sleeper: a process without a
# core is told of nothing meanwhile. Ends with this shell.
watch_lateness()
{
    (
        worst=0
        while kill -0 $$ 2>/dev/null; do
            before=${EPOCHREALTIME//[.,]/}
            sleep 0.05
            late=$(((${EPOCHREALTIME//[.,]/} - before) / 1000 - 50))
            [ "$late" -le "$worst" ] || { worst=$late && echo "$worst" >"$scratch-late"; }
        done
    ) &
    watcher=$!
}

worst_lateness() { cat "$scratch-late" 2>/dev/null || echo 0; } # ms, since watch_lateness

# Starts one process per rank; rank R's standard output is $scratch/R if `keep` is set. Afterwards `pids` has them all.
start_job() # ADDRESS PORT "RANKS-ON-HOST-1 RANKS-ON-HOST-2 ..." COMMAND ...
{
    local address=$1 port=$2 counts=$3 host=0 rank=0 size=0 local_rank count output=/dev/stdout
    shift 3
    for count in $counts; do size=$((size + count)); done
    pids=()
    for count in $counts; do
        host=$((host + 1))
        for ((local_rank = 0; local_rank < count; local_rank++)); do
            [ -z "${keep:-}" ] || output=$scratch/$rank
            RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$local_rank LOCAL_WORLD_SIZE=$count MASTER_ADDR=$address MASTER_PORT=$port \
                GYRE_HOST_ID=host$host GYRE_SECRET=namespaces-test-secret-$job GYRE_MEET_TIMEOUT=30 \
                timeout -s KILL 240 ip netns exec "$job-$host" "$@" >"$output" &
            pids+=($!)
            rank=$((rank + 1))
        done
    done
}

# Waits for all of them; false if one failed.
end_job()
{
    local pid failed=0
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    pids=()
    return $failed
}
