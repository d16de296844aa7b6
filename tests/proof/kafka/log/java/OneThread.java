package org.apache.kafka.storage.internals.log;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;

/** A scheduler without threads: what is due runs when somebody asks for it, what has no delay at once. */
final class OneThread implements Scheduler {
    private final Time time;
    private final List<Task> tasks = new ArrayList<>();

    OneThread(Time time) {
        this.time = time;
    }

    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
        tasks.clear();
    }

    @Override
    public void resizeThreadPool(int newSize) {
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable work, long delayMs, long periodMs) {
        Task task = new Task(work, time.milliseconds() + delayMs, periodMs);
        if (delayMs <= 0 && periodMs < 0) {
            work.run();
            task.complete(null);
        } else {
            tasks.add(task);
        }
        return task;
    }

    /** Run what is due by now; what is periodic once, however often it was due. */
    void runDue() {
        for (Task task : List.copyOf(tasks)) {
            if (!task.isDone() && task.dueMs <= time.milliseconds()) {
                task.work.run();
                if (task.periodMs > 0) {
                    task.dueMs = time.milliseconds() + task.periodMs;
                } else {
                    task.complete(null);
                }
            }
        }
        tasks.removeIf(CompletableFuture::isDone);
    }

    private static final class Task extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        private final Runnable work;
        private final long periodMs;
        private long dueMs;

        Task(Runnable work, long dueMs, long periodMs) {
            this.work = work;
            this.dueMs = dueMs;
            this.periodMs = periodMs;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(dueMs, TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
        }
    }
}
