package org.apache.kafka.storage.internals.log;

import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that goes on only where a list of requests says so. */
final class StoppedClock implements Time {
    private long nowMs;

    StoppedClock(long nowMs) {
        this.nowMs = nowMs;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return TimeUnit.MILLISECONDS.toNanos(nowMs);
    }

    @Override
    public void sleep(long ms) {
        nowMs += ms;
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nobody waits here");
    }

    @Override
    public <T> T waitForFuture(Future<T> future, long deadlineNanos) {
        throw new UnsupportedOperationException("nobody waits here");
    }
}
