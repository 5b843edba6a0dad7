use comeback_tests::{Shell, on_fast_clock};

use crate::world::World;

/// Waits 5 ms for a condition, as Python waits for the interpreter's lock, and prints the real time in nanoseconds.
const WAIT: &str = "
import ctypes, time
c = ctypes.CDLL(None)
attributes, condition, mutex = (ctypes.create_string_buffer(64) for _ in range(3))
c.pthread_condattr_init(attributes)
c.pthread_condattr_setclock(attributes, time.CLOCK_MONOTONIC)
c.pthread_cond_init(condition, attributes)
c.pthread_mutex_init(mutex, None)
c.pthread_mutex_lock(mutex)
begun = time.monotonic_ns()
end = begun + 5_000_000
c.pthread_cond_timedwait(condition, mutex, (ctypes.c_long * 2)(*divmod(end, 10**9)))
print(time.monotonic_ns() - begun)
";

/// If such waits end at once, the threads of a server occupy all processors while they wait for each other, and the
/// server accepts no connection for many seconds.
pub(crate) async fn threads_wait_in_real_time_on_a_fast_clock(_: &World) {
    let shell = Shell::default().with("WAIT", WAIT);
    let waited = shell.run(&format!("timeout 60 {} python3 -c \"$WAIT\"", on_fast_clock(60)));
    let waited: u64 = waited.unwrap_or_else(|error| panic!("{error}")).trim_end().parse().expect("a number");
    assert!(waited >= 5_000_000, "{waited} ns");
}
