# Runs sshd ($0) with the configuration $1 until the standard input ends.
# The superuser's sshd wants this folder, which its package's service makes.
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
"$0" -D -e -f "$1" </dev/null 2>&1 &
cat >/dev/null
kill $!
wait
