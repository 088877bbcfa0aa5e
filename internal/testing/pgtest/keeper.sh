# Waits until the test process is gone or lets go of the pipe, stops the server
# whose directory is given, and removes that. Who is killed runs no clean-up of
# his own, so it is done by somebody else.
cat >/dev/null
lock=$1/data/postmaster.pid
if [ -f "$lock" ]; then
	pid=$(sed -n 1p "$lock")
	memory=$(sed -n '7s/.* //p' "$lock")
	kill -QUIT "$pid" 2>/dev/null
	tries=0
	while [ -f "$lock" ] && kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	if [ -f "$lock" ]; then # it was killed, and left its shared memory
		kill -KILL "$pid" 2>/dev/null
		ipcrm -m "$memory" 2>/dev/null
	fi
fi
rm -rf "$1"
