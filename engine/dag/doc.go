// Package dag turns jobs into stages and stages into task sets, and decides what
// to run again when something is lost. It is Spark's DAGScheduler as a pure state
// machine: events go in through methods, and what is to be done comes out as a
// [Ready]. There is no goroutine, clock, socket, file or random source inside, so
// an interaction can be replayed from a transcript and a race is a test with a
// seed. Tasks and executors' slots are not its business but engine/sched's.
//
// # Stages
//
// A job's lineage is cut at its shuffles. What ends in a shuffle is a map stage,
// with a task for each partition of the shuffle's parent; what ends in the action
// is the job's result stage. A stage runs when all stages it reads from have all
// their outputs, and only for partitions whose output is missing. There is one
// map stage for each shuffle, until DropShuffles says that no later job will read
// it, shared by all jobs: a later job whose shuffle has all its outputs skips the stage and
// everything before it.
//
// A stage may be submitted several times; each is an attempt. An attempt ends
// when its tasks have ended, or at once when a task of it could not read a map
// output (a fetch failure). Then the output is marked lost, the map stage
// recomputes it, and the failed stage is submitted again for what it still
// lacks. After Config.MaxAttempts failed attempts in a row its jobs fail, with
// the last cause. What tasks of an earlier attempt still deliver is used if the
// partition is still missing and ignored otherwise: attempts of a stage compute
// the same bytes, because they run on the same image with the same seed.
//
// # Images and seeds
//
// A job's tasks run on the image captured when its action was called. A map stage
// keeps the image it first ran with: were some outputs recomputed with a later
// one, they might not fit the others. Its seed is a mix of the application's
// seed, the ordinal of the job that first needed it and its own ordinal among the
// stages new in that job, so it is the same in each run of a program whatever
// fails.
//
// # The caller's duties
//
// The shell around a Scheduler owns it together with a graph.Graph and a
// sched.Scheduler, on one goroutine. Whenever something has happened it
//
//  1. calls the method for it: SubmitJob, CancelJob, DropShuffles, ExecutorLost, or, for what
//     sched reports, TaskEnded and TaskSetFailed. When an executor is lost, sched
//     is told first and its reports are passed on before, or after, ExecutorLost;
//     both orders are right. An executor's ID is never used again after it is lost.
//  2. calls Ready and does what it says, in the order of its fields:
//     Submit, Cancel and Done go to the methods of sched.Scheduler of those names;
//     Results go to whoever waits for the job, who puts them in the order of their
//     index; Ended ends the job; Release drops images; Remove has executors delete
//     shuffles' data; Events go to the event bus.
//  3. asks sched.Scheduler.Ready for further reports and goes back to 1 with them
//     until both have nothing more, then lets sched launch tasks.
//
// The shell keeps a job's image from SubmitJob until Release names it, at the end
// of the job or, if a map stage first ran with it, of the stage. It answers executors'
// requests for map outputs with MapOutputs. If that fails because outputs are
// missing, the executor reports the task as failed with msg.FailFetch and a
// msg.FetchLost whose Map is -1.
package dag
