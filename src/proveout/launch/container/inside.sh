# Runs the command inside the container and writes down how it ended: the engine's own status cannot tell an exit
# status of 137 from a kill, nor who killed. Nothing but a POSIX shell, sleep and /proc is needed.
here={place}
end="$here/.container-end"
say() {{ echo "$1" >"$end.new" && mv "$end.new" "$end"; }}
killed() {{
    count=0
    while read -r name number; do
        [ "$name" = oom_kill ] && count=$number
    done 2>/dev/null </sys/fs/cgroup/memory.events || while read -r name number; do
        [ "$name" = oom_kill ] && count=$number
    done 2>/dev/null </sys/fs/cgroup/memory/memory.oom_control
    echo "$count"
}}
rm -f "$end"
umask {umask}
cd {cwd} || {{ say "not-started {cwd_text} is no directory in the container"; exit 126; }}
{setup}
command -v -- "$1" >/dev/null || {{ say "not-started $1: no such program in the container"; exit 127; }}
child=
trap '[ -n "$child" ] && kill -TERM "$child" 2>/dev/null' TERM INT HUP
read -r shell </proc/$$/comm
# A parent that never waits keeps the ended child, so that its status can be read from /proc.
(
    (
        until [ -e "$end.go" ]; do sleep 0.02; done
        exec "$@"
    ) &
    echo $! >"$end.pid"
    exec sleep 2147483647
) &
keeper=$!
while read -r name </proc/$keeper/comm && [ "$name" = "$shell" ]; do sleep 0.02; done
read -r child <"$end.pid"
: >"$end.go"
raw=
while read -r stat </proc/"$child"/stat; do
    rest=${{stat##*) }}
    case $rest in Z* | X*)
        raw=${{rest##* }}
        break
        ;;
    esac
    sleep 0.2
done 2>/dev/null
rm -f "$end.go" "$end.pid"
number=$(killed)
[ "$number" = 0 ] || echo "proveout: the kernel killed $number process(es) of this container for memory"
say "ended ${{raw:-unknown}} $number"
exec 2>/dev/null
kill -KILL "$keeper"
wait "$keeper"
[ -n "$raw" ] || exit 1
[ $((raw % 128)) = 0 ] && exit $((raw / 256))
exit $((128 + raw % 128))
