# Every sentence that readers of a report see, in English. The same ids stand in ja.ftl.
# Counts arrive as numbers, so that their nouns agree with them; all other numbers arrive printed, as text.

# ---- the table ----
row-time = time (s)
row-rate = r/s
row-min = min ({ $unit })
row-mean = mean ({ $unit })
row-median = median ({ $unit })
row-p99 = p99 ({ $unit })
row-max = max ({ $unit })
row-connect = connected ({ $unit })
row-first-byte = first byte ({ $unit })
row-last-byte = last byte ({ $unit })
row-failed = failed
row-in-flight = in flight at end
row-retries = sent again
row-abandoned = abandoned
row-logged-ending = server ended by
row-logged-answers = answers
row-logged-lines = lines of them
row-logged-lost = answers without a line
row-logged-range =   in a trial
row-logged-unwritten = not yet written before
row-logged-unread = unreadable lines
ending-stop = stop
ending-graceful-stop = graceful stop
ending-graceful = graceful restart
ending-restart = restart
ending-kill = kill
row-trials = trials
row-ratio = r/s ratio
row-interval = { $confidence } % interval
row-against = ratio
metric-p50 = median ({ $unit })
metric-p99 = p99 ({ $unit })
metric-cpu-per-answer = CPU ({ $unit })
metric-memory-peak = memory
metrics-note = Geometric means of the trials: median and p99 of the latency, the server's CPU time for an answer, the largest memory of the server's own. Less is better. Each is a question of its own: its intervals hold together over the cells, not over these four.
metrics-alone-note = Geometric means of the trials: median and p99 of the latency, the server's CPU time for an answer, the largest memory of the server's own.
metrics-resident-note = Memory is what the server's processes have resident, added up: what several share counts in each of them. In a group of its own ([confine]) it counts once.
row-verdict = verdict
row-missing = blocks still needed
role-baseline = baseline
role-again = A/A
table-note = Time is the median of the trials, r/s their geometric mean; latencies and counts are of all trials together. p99 needs 299 answers.
unanswered-note = Where requests without an answer leave a latency unknown, because only a lower bound of theirs is known, there is none in the table.
in-flight-note = In flight at end: begun and not yet answered when the load ended; neither answers nor failures.
logged-note = Answers are counted by the clients, warm-up included, lines in the log after the server's end. “Not yet written before” is how many answers of a trial had no line when the load was over: they were still in the server's buffers or on their way.
logged-unread-note = Unreadable lines are not counted as lines of an answer: they are cut off, or not of the format that the plan says.
logged-unsure-note = Where two numbers stand, some requests were cut off by the end of the load, failed, or were sent again: the server may have logged each of them or not. A load of so many requests leaves none.
logged-none-note = A dash stands where there was no file of the log's name.
retries-note = Sent again, on a new connection: a kept one had ended without an answer, as idle ones may; not failures.
abandoned-note = Abandoned: by users who gave up or asked again before the answer was there; neither answers nor failures. The server may go on working on them.
phases-note = Medians over all trials: the time to connect of every connection opened, the time from the start of a request to the first and to the last byte of every good answer.
budget-mean = mean
budget-part-unsent = no free connection
budget-part-connect = connect
budget-part-accept-queue = accept queue
budget-part-cpu-wait = waiting for a CPU
budget-part-on-cpu = on CPU
budget-part-reclaim = making room in memory
budget-part-swap = swap-in
budget-part-disk = disk
budget-part-lock = lock or backend
budget-part-sending = sending
budget-remainder = remainder
budget-left-out = (counted beyond the mean)
budget-reclaim-in-all = (reclaim, on CPU too)
budget-sentence = { $cell }: of { $mean }, { $cpu } is CPU; the largest part is { $part } with { $most }; { $unknown } % of what was counted is unknown.
budget-note = Means of all good answers by the client's clock; the parts and the remainder add up to the mean. Lines in parentheses are in no sum: waits beyond the mean, of idle or parallel processes, and all of reclaim by the kernel's counter.
budget-lock-note = Where those who had the requests were seen too seldom, lock or backend is what of the server's own time nothing else explains; a queue behind the server, such as PHP-FPM's, is in it.
budget-slowest-note = Means of the slowest hundredth of each trial. What waited on kept connections before the server's own clock is in the remainder, but for waits for a CPU.

# ---- comparison ----
verdict-better = better
verdict-worse = worse
verdict-equivalent = equivalent
verdict-inconclusive = inconclusive
verdict-better-long = better
verdict-worse-long = worse
verdict-equivalent-long = equivalent, the difference is smaller than { $margin } %
verdict-inconclusive-long = inconclusive
verdict-inconclusive-more = inconclusive (blocks still needed: about { $blocks })
verdict-inconclusive-once = inconclusive (one block shows no noise; blocks still needed to tell how many it takes: { $blocks })
verdict-inconclusive-many = inconclusive (blocks still needed: more than { $blocks })
compared = { $ratio } times the baseline's requests per second ({ $confidence } % interval { $low } to { $high }, { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    })
compared-once = { $ratio } times the baseline's requests per second (no interval from a single block)
compared-unanswered = no good answer at all in { $blocks ->
        [one] the one block
       *[other] { $blocks } blocks
    } in which the baseline gave some: { $ratio } times its requests per second
compared-and-judged = { $compared }: { $judgement }.
noise-floor = A/A: the baseline measured a second time came out at { $ratio } ({ $low } to { $high }). Nothing was changed, so differences up to a factor of { $floor } cannot be told from noise in this run.

noise-split = From trial to trial of a cell throughput differs by { $sd } % (standard deviation, what a block shares taken out). Of that variance { $restart } % comes with each start of the server, { $window } % with the seconds of a window, { $request } % with single requests.
noise-split-found = From trial to trial of a cell throughput differs by { $sd } % (standard deviation, what a block shares taken out). Of that variance { $restart } % comes with what changes from trial to trial, { $window } % with the seconds of a window, { $request } % with single requests.
noise-split-short = From trial to trial of a cell throughput differs by { $sd } % (standard deviation, what a block shares taken out). Of that variance at most { $request } % comes with single requests; windows of less than five seconds do not tell what each start of the server makes of it.
noise-split-short-found = From trial to trial of a cell throughput differs by { $sd } % (standard deviation, what a block shares taken out). Of that variance at most { $request } % comes with single requests; windows of less than five seconds do not tell what changes from trial to trial.
noise-split-requests = From trial to trial of a cell throughput differs by { $sd } % (standard deviation, what a block shares taken out). All of that variance may come with single requests; windows of less than five seconds do not tell more.
noise-of-requests = More requests in a window would lessen it most: longer windows.
noise-of-windows = Longer windows would lessen it most.
noise-of-either = Longer windows would tell whether they lessen it; more blocks always do.
noise-of-restarts = More blocks would lessen it; longer windows would not.
judged-together = All intervals ({ $n }) hold together with { $confidence } % confidence: each is wider than it would be alone, and differences are shown by Holm's procedure.
judged-looks = The run was to end when everything is decided, and could be looked at { $looks } times: intervals and verdicts hold with { $confidence } % confidence over all looks.
judged-decided = Everything was decided after { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    }.
judged-settled = After { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    } nothing more could be decided: what is open has trials without a single good answer.
judged-early = After { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    } there was no time for more, and not everything is decided.
judged-undecided = After { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    }, the most there can be, not everything is decided.

# ---- what follows ----
section-recommendation = Recommendation
recommend-take = Set { $setting } instead of { $stays }: { $why }.
recommend-why-goodput = good answers per second { $ratio }
recommend-why-metric = as many good answers per second, and { $metric } { $ratio }
recommend-why-metric-no-fewer = no fewer good answers per second, within the margin, and { $metric } { $ratio }
recommend-why-expected = it does what the plan expects, and most trials of { $stays } do not ({ $missed })
recommend-why-answers = it gives { $rate } good answers per second, and { $stays } gave none in any trial
recommend-ratio-short = ×{ $ratio } ({ $low } to { $high })
recommend-ratio = ×{ $ratio }
recommend-ratio-interval = ×{ $ratio } ({ $confidence } % interval { $low } to { $high })
recommend-stay = Keep { $stays }: no other setting of the plan was found to be better.
recommend-open = Not decided: { $stays } or { $others }.
recommend-open-latency = The rate is given, so latency decides.
recommend-more = About { $blocks ->
        [one] one block
       *[other] { $blocks } blocks
    } more would probably decide it.
recommend-more-time = About { $blocks ->
        [one] one block
       *[other] { $blocks } blocks
    } more would probably decide it: { $time }, by the time that blocks took.
recommend-minutes = { $n } min
recommend-more-many = More than { $blocks } further blocks would be needed to decide it: longer windows, or a calmer machine.
recommend-more-once = One block does not show the noise: { $blocks } more tell how much it takes to decide it.
recommend-more-unknown = How much more would decide it cannot be told from these blocks.
recommend-equivalent = The same, within the plan's margin: { $list }.
recommend-worse = Worse: { $list }.
recommend-lines = It sets: { $lines }
recommend-lines-instead = In { $stays }, in its place: { $lines }
recommend-no-worse = Shown to be no worse, within the margin, though not to be the same: { $list }.
recommend-gains-of = Shown of { $setting } so far, better: { $list }.
recommend-costs-of = Shown of { $setting } so far, worse: { $list }.
recommend-gains = It also brings: { $list }.
recommend-costs = It costs: { $list }.
recommend-changed = { $metric } { $ratio }
recommend-goodput = good answers per second
recommend-beside = { $metric } of { $load }
recommend-failed = failed requests ({ $failed } of { $all })
recommend-loses = Lines of the access log are lost with: { $list }.
recommend-part-of = { $setting } ({ $part } of { $all })
recommend-fails = Most requests fail with: { $list }.
recommend-no-log = the access log
recommend-alike = Their intervals overlap with its own: { $list }.
recommend-depends = How much it does depends on other factors: { $list }.
recommend-expected-met = Does all that the plan expects, in every trial: { $list }.
recommend-expected-missed = Misses some of it, in one trial or more: { $list }.
recommend-nothing = The plan has no two settings that met the same load: there is nothing to choose from.
recommend-limit-then = What limits it then: { $limit }. { $advice }
recommend-limit-of = What limits { $cell }: { $limit }. { $advice }
recommend-scope = For this page mix ({ $pages }), these clients ({ $clients }), this memory ({ $memory }) and these CPUs ({ $cpus }); with others, measure again.
scope-memory = { $memory }, without swap
scope-memory-swap = { $memory }, swap allowed
scope-memory-host = { $memory }, the whole machine's
scope-cpus = { $n } for the server alone
scope-cpus-shared = { $n }, shared with the load generator
clients-keep-alive = { $pace }, keep-alive
clients-close = { $pace }, a new connection each

# ---- the plan's own questions ----
section-contrasts = What the plan asks
contrast-sides = { $of } against { $against }
contrast-compared = { $ratio } times the requests per second ({ $confidence } % interval { $low } to { $high }, { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    })
contrast-once = { $ratio } times the requests per second (no interval from a single block)
contrast-unanswered = no good answer at all from one of its cells in { $blocks ->
        [one] the one block
       *[other] { $blocks } blocks
    } in which the other side gave some: { $ratio } times its requests per second
contrast-none = no block has a good answer from all of its cells, so nothing can be said.
interaction-compared = together they give { $ratio } times what each alone would lead to expect ({ $confidence } % interval { $low } to { $high }, { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    })
interaction-once = together they give { $ratio } times what each alone would lead to expect (no interval from a single block)
interaction-unanswered = one of its cells gave no good answer at all in { $blocks ->
        [one] the one block
       *[other] { $blocks } blocks
    }: { $ratio } is no ratio of anything
interaction-more = more together
interaction-less = less together
interaction-independent = independent
interaction-independent-long = independent, what they do together is smaller than { $margin } %
effect-levels = { $from } → { $to }
effect-aliases = Cannot be told from: { $effects }.
alias-reversed = { $effect } the other way round
design-full = Factors: { $factors }. Every combination of their levels is a cell: { $cells }.
design-fraction = Factors: { $factors }. Of all combinations of their levels ({ $all }) the plan has { $cells }: { $made }.
design-resolution-3 = Resolution III: what one factor does cannot be told from what two others do together. Confirm what you find with a plan of its own.
design-resolution-4 = Resolution IV: what one factor does is told from what two others do together, but not one such pair from another.
design-resolution-5 = Resolution { $resolution }: what one factor does and what two do together is mixed up only with what more of them do together.
design-effects = What one factor does is the mean over all levels of the others. What several do together is how far they are from independent.
contrasts-caption = Requests per second as a ratio, on a logarithmic axis. The A/A cell shows the noise between two cells.
missing-note = Blocks still needed: about so many more would probably decide that metric.
contrasts-note = Ratios of geometric means. For all but requests per second less is better; each metric is a question of its own.
ratio-p50 = median
ratio-p99 = p99
ratio-cpu-per-answer = CPU per answer
ratio-memory-peak = memory

# ---- a sweep over a number ----
section-sweep = Throughput against the number
row-law = r/s by the law
row-left-out = left out
sweep-note = r/s are geometric means of the trials, each with an interval of its own. The law is fitted to their logarithms by least squares (Levenberg and Marquardt), its intervals come from drawing whole blocks anew.
sweep-axes = r/s against { $over }
sweep-measured = measured
sweep-by-law = by the law
sweep-law = The law (USL; values: { $points }, blocks: { $blocks }): { $lambda } per second for one; waiting for what only one can have (sigma) costs { $sigma } % ({ $slow } to { $shigh } %), agreeing with each other (kappa) { $kappa } % ({ $klow } to { $khigh } %).
sweep-law-alone = The law (USL; values: { $points }, blocks: { $blocks }): { $lambda } per second for one; waiting for what only one can have (sigma) costs { $sigma } %, agreeing with each other (kappa) { $kappa } %.
sweep-few-blocks = { $blocks ->
        [one] { $blocks } block is too little
       *[other] { $blocks } blocks are too few
    } to say where these numbers and a peak lie; four are needed.
sweep-peak = Most throughput at { $over } { $peak } ({ $low } to { $high }): { $rate } per second by the law.
sweep-no-peak = No peak was seen up to { $over } { $most }: throughput still grows there, or stays as it is.
sweep-peak-unsure = Where the peak lies these blocks do not tell: the law puts it near { $over } { $peak }, so that throughput falls up to { $most }, but it may lie beyond the values tried.
sweep-knee = The knee is at connections { $knee }: up to there throughput gains more than latency loses (throughput over latency is largest).
sweep-miss = The law misses the measurements by { $miss } % typically: something else bends the curve, such as a limit of workers. Read the table, not the law.
sweep-cliff = A cliff: from { $over } { $before } to { $behind } throughput falls to { $left } %, as no such law does. What limited the cell behind it stands below; the law is fitted to what lies before.
sweep-no-law = No law is fitted: it needs four values with good answers and without failures or swapping.
sweep-left-silent = no answers
sweep-left-failed = failures
sweep-left-swapped = swapped
sweep-left-behind = behind the cliff

# ---- two runs, one after the other ----
section-between = The second against the first
between-first = A
between-second = B
between-not-interleaved = These runs were not interleaved: { $gap } lay between their beginnings. Whatever changed on the machine meanwhile is in every difference below.
between-rule = So the intervals are wider than within a run. They allow for a random walk of { $walk } % and a trend of { $trend } % per trial, from the middle of one run to that of the other (trials between: { $trials }) as if one had followed the other at once: that alone may make { $allowance } %. What changed over a longer time between them is not allowed for.
between-own-walk = The walk is what these runs themselves seem to show from block to block, though with few blocks noise may look like one; { $usual } % is allowed for at least.
between-better = To see smaller differences, put both settings into one plan.
between-compared = { $ratio } times the requests per second ({ $confidence } % interval { $low } to { $high }; trials: { $first } and { $second })
between-alone = { $ratio } times the requests per second (no interval: a side with one trial, or trials that are all alike; trials: { $first } and { $second })
between-nothing = a side has no good answers, so nothing can be said.
between-note = Ratios of geometric means, the second over the first. For all but requests per second less is better; each metric is a question of its own.
between-machine = The machines are not the same: { $first } / { $second }. What differs may be theirs.
between-load = “{ $cell }” had another load: { $first } / { $second }. The two answer different questions.
between-host = The host's name is not the same: { $first } / { $second }.
between-kernel = The kernel is not the same: { $first } / { $second }.
between-version = The version of webdyno is not the same: { $first } / { $second }.
between-server = The server's version is not the same: { $first } / { $second }.
between-placement = Server and load generator were pinned to other CPUs (server, load): { $first } / { $second }.
between-confinement = The server lived in other limits (memory, swap, CPUs, disks): { $first } / { $second }.
between-warmup = Trials were warmed up otherwise: { $first } / { $second }.
between-configuration = What the plans set for all cells is not the same: { $first } / { $second }.
between-settings = “{ $cell }” had other settings: { $first } / { $second }.
between-only = Only one of the two has: { $cells }.

# ---- warnings ----
warn-incomplete = The run is not complete: it made { $made } of { $planned ->
        [one] { $planned } trial
       *[other] { $planned } trials
    }.
warn-no-baseline = The baseline “{ $cell }” gave no good answer in any trial that counts, so nothing can be compared.
warn-not-compared = “{ $cell }” could not be compared: { $why }.
warn-unanswered = In { $blocks } of { $of ->
        [one] { $of } block
       *[other] { $of } blocks
    } one of the two gave no good answer at all. The ratio is that of the rest, and nothing is concluded from it.
warn-invalid = Invalid trials, which do not count: { $n } of { $made }.
warn-ended-early = Trials ended early by a guard: { $n } of { $made }. What they measured until then counts.
warn-one-block = Only one block could be compared: no interval can be given.
warn-one-block-of = Only one block could be compared for { $cells }: no interval can be given for that.
warn-few-blocks = Only { $blocks } blocks could be compared: the intervals rest on the assumption of normal noise.
warn-few-blocks-of = Only { $blocks } blocks could be compared for { $cells }: an interval from so few rests on the assumption of normal noise.
warn-zero-variance = Every block gave the same ratio; no noise was seen that the interval could allow for.
warn-below-margin = There is a difference, but one too small to matter by the plan's margin.
warn-ranks-disagree = The signed-rank test says otherwise (p = { $p }): a single block may decide the interval.
warn-within-noise = The verdict was withdrawn: differences up to a factor of { $floor } cannot be told from noise in this run.
warn-noise-unknown = Blocks that have both the A/A cell and the baseline: { $blocks }. That is too few to know the noise of this run, so the difference was not held against it.
warn-again-differs = The A/A cell came out at { $ratio } of the baseline although nothing was changed: something drifted during the run. Do not trust small differences.
warn-generator-share = The load generator shared the server's CPUs and took up to { $share } % of the machine.

# ---- doubts about the load ----
doubt-little = Little's law is off in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: on average { $achieved } were in flight, rate times latency of good answers gives { $computed }, { $deviation } %. Time may have gone into requests that did not count.
doubt-concurrency = Fewer requests were in flight than asked for in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: { $achieved } instead of { $asked }.
doubt-generator = The load generator was at its own limit in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    } ({ $share } % of its CPU time): the server may be able to do more.
doubt-turned-away = A firewall or a limit per client seems to have refused in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }. Answers by 403 or 429 in one load: up to { $answers }; in one second { $share } % of all. Exempt the address that the load comes from, or what is measured is the refusal.
doubt-warm-up = The window began before the server was warm in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: its first { $seconds } s moved throughput by { $pull } %. Warm up for that much longer.
doubt-drift = Throughput was not steady in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: it changed by up to { $drift } % within the window. Warm up longer and measure longer, and look for what grows or fills meanwhile.
doubt-others = Other programs had { $percent } % of the CPUs { $trials ->
        [0] meanwhile
        [one] in the only trial
       *[other] at worst, in { $n } of { $trials } trials
    }: { $names }. They were at work before anything was sent, so they are none of the server's; end them, then measure again.
doubt-foreign-requests = Somebody else used the server in { $trials ->
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: it served { $served ->
        [one] { $served } request
       *[other] { $served } requests
    } while webdyno sent { $ours }, so at least { $others } were others' (or its own to itself). Measure when nobody else uses it.
doubt-foreign-connections = Somebody else used the server in { $trials ->
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: beside webdyno's { $ours ->
        [one] connection
       *[other] { $ours } connections
    }, others had { $others } in use on average. Measure when nobody else uses it.
doubt-few-waves = Few requests for so many connections at a time in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    } ({ $waves } times as many): start and end weigh heavily.
doubt-rate = The rate was missed in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: { $asked } per second were due, { $achieved } per second were sent. There were not enough free connections, or the generator could not keep up.
doubt-late = The load generator itself was late in { $trials ->
        [0] this load
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: more than { $others } % of the requests began over 1 ms after they were due although a connection was free ({ $percentile } { $late }). The latencies contain that.
doubt-in-flight = Many requests were still in flight when the load ended: { $n }, with { $good ->
        [one] { $good } good answer
       *[other] { $good } good answers
    }. A longer load would tell more.
doubt-late-answers = Many good answers came only after the end: { $n } of { $good }. They are in no rate. Either requests piled up, because the server did not keep up, or the load was short for such latencies.
doubt-retries = Many requests were sent again, because a kept connection ended without an answer: { $n }, with { $good ->
        [one] { $good } good answer
       *[other] { $good } good answers
    } ({ $example }). A server that dies of requests looks like this.

# ---- failures ----
failure-refused = connection refused
failure-reset = connection reset
failure-timeout = timed out
failure-closed-early = closed before the answer was complete
failure-bad-response = not an HTTP answer
failure-length-differs = the length of the body differs
failure-status = status other than 2xx ({ $statuses })
failure-proxy = the proxy opened no tunnel
failure-tls = TLS failed
failure-check = a check of the answer did not hold
failure-local = could not be sent from this machine
with-detail = { $text } ({ $detail })

# ---- runs and trials ----
end-complete = complete
end-unfinished = unfinished
end-interrupted = interrupted
end-failed = failed: { $why }
outcome-complete = complete
outcome-invalid = invalid: { $why }
stop-thrash = ended early: the server's memory thrashed longer than the plan allows
stop-failures = ended early: too many requests failed
stop-host-swap-in = ended early: the host itself began to read from swap
stop-host-memory = ended early: the host itself ran short of memory
stop-time-limit = ended early: the time limit of a trial was reached
stop-unwatched = ended early: the sampler fell silent, so the host was not watched any more
stop-interrupted = interrupted; does not count
trial-of = block { $block }, { $cell }
note-in-trials = in { $trials ->
        [one] the only trial
       *[other] { $n } of { $trials } trials
    }: { $note }
note-sampler = the sampler says: { $note }
note-killable = protection from the out-of-memory killer was refused, so it may be killed when memory runs out
note-not-locked = locked memory was refused, so readings may be late when memory is short
note-no-priority = real-time priority was refused, so readings may be late when every CPU is busy
block-n = block { $block }
placement-shared = server and load generator share the CPUs
placement-elsewhere = the server is not known to be on this machine, which has the load generator
placement-away = load sent by { $from }
placement-away-known = load sent by { $from } ({ $name }, { $cpus ->
        [one] { $cpus } CPU
       *[other] { $cpus } CPUs
    }), clocks aligned to within { $uncertainty }
placement-split = server on CPU { $server }, load generator on CPU { $load }
confined-to = server confined to { $limits }
confined = { $memory } of memory, without swap
confined-swap = { $memory } of memory, swap allowed
confined-cpu = { $cpus } of a CPU's time
confined-io-read = { $rate }/s read from each disk
confined-io-write = { $rate }/s written to each disk
confined-io-read-ops = operations that read from each disk: { $rate }/s
confined-io-write-ops = operations that write to each disk: { $rate }/s
amount-requests = { $requests ->
        [one] { $requests } request
       *[other] { $requests } requests
    }
amount-duration = { $duration }
amount-either = { $requests ->
        [one] { $requests } request
       *[other] { $requests } requests
    } or { $duration }, whichever ends first
amount-open = until stopped
load-keep-alive = { $request }, { $pace }, { $amount }, keep-alive
load-close = { $request }, { $pace }, { $amount }, a new connection each
request-http10 = { $request } by HTTP/1.0
request-with-body = { $request } with a body of { $bytes }
request-logged = { $methods } as in { $file }
request-of-mix = { $request } { $share } %
request-page = { $request } with { $parts ->
        [one] { $parts } thing that belongs
       *[other] { $parts } things that belong
    } to it
request-mix = { $kinds ->
        [one] { $kinds } kind
       *[other] { $kinds } kinds
    } of requests ({ $list })
pace-closed = { $connections } at a time
pace-open = { $arrivals }, over at most { $connections ->
        [one] { $connections } connection
       *[other] { $connections } connections
    }
pace-pipelined = { $pace }, each pipelined { $depth } deep
rate-constant = { $rate } per second
rate-held = { $rate } per second for { $duration }
rate-ramp = { $from } to { $to } per second within { $duration }
arrivals-even = { $rate } at equal distances
arrivals-poisson = { $rate } at random (Poisson)
arrivals-bursts = { $rate } in bursts of { $size }
pace-users = users with { $connections ->
        [one] { $connections } connection
       *[other] { $connections } connections
    } each, at most { $users } of them: { $pace }
arrivals-logged = { $requests ->
        [one] { $requests } request
       *[other] { $requests } requests
    } as they came, at { $speed } times their speed
host-line = { $name }: CPUs { $cpus }, { $memory } memory, { $swap } swap, Linux { $kernel }
made-line = { $began }, webdyno { $version }, { $blocks ->
        [one] { $blocks } block
       *[other] { $blocks } blocks
    }, seed { $seed }: { $end }

# ---- one load ----
section-thresholds = What was expected
section-times = Times
section-histogram = Latency of requests
section-over-time = Over time
section-limit = What limited it
section-search = The highest rate
section-steps = Steps
search-found = { $rate } per second held, twice: { $goals }, 99 % of what was due answered well, and nothing left unsent.
search-missed = { $rate } per second missed:
search-at-least = At least { $rate } per second: that held, twice: { $goals }.
search-generator = At { $rate } per second the load generator was the limit, not the server. Send from a machine with more to spare.
search-nothing = Nothing held: { $rate } per second is the lowest rate that can be judged by { $goals } in steps of this length, and it missed.
search-open = Not found: the search ended before it knew. The highest rate that held: { $held }; the lowest that missed: { $missed }.
search-none = none
search-behind = good answers to the { $due ->
        [one] one request that was
       *[other] { $due } requests that were
    } due: { $good }; it takes 99 %
search-behind-late = good answers to the { $due ->
        [one] one request that was
       *[other] { $due } requests that were
    } due: { $good } in time, and { $late } after the end, more of them than are usually under way; it takes 99 % in time
search-unsent = no connection was free for { $n ->
        [one] { $n } request
       *[other] { $n } requests
    }; with more connections more may be sent
search-stopped = a guard ended it early
search-late = the load generator was late: { $others } % of the requests began more than { $late } after they could
search-saturated = the load generator used nearly all the CPU time it can have
search-steps = Steps tried: { $n }. Steps that long are samples: a rate close to the limit may hold now and miss the next time.
search-contradiction = Chance or a change of the server plays a part: { $rates } held in one trial and missed in another, or missed below a rate that held. A rate counts only when nothing at or below it missed.
search-rate = asked per second
search-good = good answers per second
search-outcome = outcome
search-held = held
search-not-held = missed
search-not-held-generator = generator
search-closed = Before the steps every connection sent as fast as it was answered: { $rate } good answers per second.
section-probe = What a visitor saw
section-ab-time = ab's two lines "Time per request"
ab-time-per-request = The first ({ $each }) is { $connections ->
    [one] 1 connection
   *[other] { $connections } connections
 } x { $seconds } / { $requests ->
    [one] 1 request
   *[other] { $requests } requests
 }: how long one of them would take on average if all connections were busy all the time. The second ({ $across }) is the same for one connection: the inverse of the requests per second. Neither was measured.
ab-time-measured = The mean latency that was measured, of good answers: { $mean }.
probe-visits = { $n ->
        [one] { $n } visit
       *[other] { $n } visits
    } by somebody who came now and then and opened a connection each time: { $good } answered, { $failed } failed. They are in none of the numbers above.
probe-unanswered = { $n ->
        [one] { $n } visit was
       *[other] { $n } visits were
    } still without an answer when the load ended.
probe-few = n = { $n }: so few visits support no percentile beyond { $percentile }.
probe-too-few = n = { $n }: so few visits support no percentile at all.
probe-connects = A visitor's latency contains connecting, and TLS where it is spoken. Where the load keeps its connections, its latency does not.
probe-visitor = a visitor ({ $unit })
probe-load = the load ({ $unit })
threshold-met = met: { $threshold } (found: { $found })
threshold-missed = missed: { $threshold } (found: { $found })
threshold-cut-off = not known, so missed: { $threshold } (it is { $found }, as requests were still without an answer)
threshold-too-few = not known, so missed: { $threshold } (values it needs: { $needed }, values there were: { $have }, found among them: { $found })
threshold-nothing = not known, so missed: { $threshold } (nothing of the kind was measured)
threshold-closed = not known, so missed: { $threshold } (only a load that sends at a rate of its own has such a number; give it one, such as -r 100/s)
threshold-users = not known, so missed: { $threshold } (in a load of users it is users who come at a rate, not requests, so there is no such number; expect something of page or of the latency)
threshold-no-users = not known, so missed: { $threshold } (only a load of users waits for whole pages; add --page)
more-than = more than { $value }
fact-users = users
fact-users-text = came: { $users }, turned away for want of connections: { $away }; whole pages: { $pages }, incomplete: { $incomplete }; clicked again: { $returned }
fact-impatience = impatience
fact-impatience-text = gave up: { $gave_up }, reloads: { $reloads }; abandoned requests: { $abandoned }
fact-good = good answers
fact-good-text = { $rate } per second: { $good } in { $window }
fact-late = after the end
fact-late-text = { $n ->
        [one] { $n } more good answer came
       *[other] { $n } more good answers came
    } after the end: in the times, and in no rate
fact-due = due
fact-due-text = { $asked } per second: { $arrived } in all; sent were { $sent } per second
fact-failed = failed
fact-failed-none = none
fact-failed-text = { $failed } ({ $share } of those that ended)
fact-statuses = statuses
fact-unsent = unsent
fact-unsent-text = { $unsent } ({ $share } of those due): no connection was free for them until the end
fact-in-flight = in flight at end
fact-in-flight-text = { $n }: neither answers nor failures
fact-retries = sent again
fact-retries-text = { $n }: a kept connection had ended without an answer, as idle ones may
fact-concurrency = at the same time
fact-concurrency-open = { $achieved } in flight on average
fact-concurrency-closed = { $achieved } in flight on average, of { $asked } asked for
fact-bytes = received
fact-bytes-text = { $rate } per second: { $received } in all; sent: { $sent }
fact-connections = connections
fact-connections-text = { $opened } opened
fact-generator = generator
fact-away = sent by
fact-away-text = { $from } ({ $name }, { $cpus ->
        [one] { $cpus } CPU
       *[other] { $cpus } CPUs
    }); clocks aligned to within { $uncertainty }, round trip { $trip }
fact-generator-text = { $share } of the CPU time of { $threads ->
        [one] { $threads } thread
       *[other] { $threads } threads
    }
fact-generator-late = { $share } of the CPU time of { $threads ->
        [one] { $threads } thread
       *[other] { $threads } threads
    }; { $percent } % of requests began no later than { $late } after they could
part-latency = latency ({ $unit })
part-service = service ({ $unit })
part-first-byte = first byte ({ $unit })
part-connect = connect ({ $unit })
part-handshake = TLS handshake ({ $unit })
part-page = whole page ({ $unit })
statistic-min = min
statistic-mean = mean
statistic-max = max
latency-of-users = Latency counts from when a request was sent, whole page from the click, or from when a user meant to come, to the last byte of all that belongs to the page. Pages that users gave up on, that timed out or that were not there at the end are among them as more than the time they had been waited for.
latency-of-open = Latency counts from when a request was due, service from when it was sent. What lies between is waiting for a free connection: users would wait it too, and a closed loop would not show it.
latency-of-closed = Latency counts from when a request was sent. While the server is slow, fewer are sent: users who do not wait for each other would meet longer latencies than these. Only a load with a rate of its own shows them.
latency-more-than = Latency contains { $n ->
        [one] { $n } request
       *[other] { $n } requests
    } without an answer, of which only a lower bound is known. “>” means: more than that.
latency-too-few = There were too few requests to know { $percentile }, which takes at least { $needed }.
bar-unanswered = no answer
spark-good = good answers per second, from { $least } to { $most }; a mark is { $seconds } s
spark-failed = failures per second, from { $least } to { $most }; a mark is { $seconds } s
load-interrupted = interrupted; what was measured until then is shown
load-nothing-measured = The load ended before anything was measured.
load-made-line = { $began }, webdyno { $version }, seed { $seed }: { $end }

# ---- the live screen ----
screen-beginning = beginning
screen-preflight = first requests, one at a time
screen-warm-up = warming up, nothing counts yet
screen-measuring = measuring
screen-searching = searching, step { $number }
screen-closed-first = a closed loop first
screen-ending = ending, what was measured is kept
screen-clock = { $elapsed }
screen-clock-left = { $elapsed } of { $whole }, { $left } left
screen-clock-requests = { $elapsed }, answered { $ended } of { $requests }
screen-keys = q ends it; what was measured is kept
screen-keys-again = q again leaves at once
screen-rate = Good answers per second
screen-rates = now { $now }, on average { $mean }
screen-rates-asked = now { $now }, asked { $asked }, on average { $mean }
screen-counts = good { $good }, failed { $failed }
screen-waiting = waiting { $n }
screen-failures = Failures
screen-latency-sent = Latency from when sent ({ $unit })
screen-latency-due = Latency from when due ({ $unit })
screen-so-far = so far
screen-last-second = last second
screen-step = asked { $asked }/s, good { $good }/s: { $outcome }
screen-visits = { $n ->
        [one] { $n } visit
       *[other] { $n } visits
    }, failed { $failed }, waiting { $waiting }
screen-visit-times = median { $median }, longest { $most }
screen-notes = Notes
screen-machine = This machine
screen-generator = webdyno
screen-generator-text = { $share } % of one CPU
screen-cpu = CPU
screen-cpu-text = busy { $busy }, iowait { $iowait }, steal { $steal } %
screen-memory = memory
screen-memory-text = { $available } of { $total } free
screen-swap = swap
screen-swap-none = none
screen-swap-text = { $used }, in { $in }, out { $out } { $unit }
screen-tasks = tasks
screen-tasks-text = runnable { $runnable }, blocked { $blocked }
screen-pressure = PSI
screen-pressure-text = CPU { $cpu }, memory { $memory }, I/O { $io } %

# ---- headings and labels ----
section-warnings = Before you believe the numbers
section-table = Results
section-comparison = Compared with the baseline
section-metrics = Other numbers
section-beside = Beside the cells' own loads
beside-load = { $load }, in every trial beside the cell's own load: { $sent }. Compared by itself, between the same cells and blocks.
section-logged = Access logs
section-budget = Where the mean latency went
section-budget-slowest = Where the slowest 1 % went
section-diagnosis = What limited each cell
section-settings = Effective settings that differ
section-trouble = What did not go as planned
section-latency = Latency distribution
section-trials = Trials over time
section-plan = Plan and host
told-apache = Apache's scoreboard (median, looks: { $looks }): workers at work { $busy } of { $places }, held by kept connections { $kept }
told-nginx = nginx's counters (median, looks: { $looks }): connections with a request in work { $busy }, kept open and idle { $kept }
told-pool = PHP-FPM (median, looks: { $looks }): processes at work { $active } of { $limit }, requests waiting for one { $queue }
told-pool-reached = { $pool }; pm.max_children was reached { $reached ->
        [one] once
       *[other] { $n } times
    } while more were wanted
expected-met = met in { $trials ->
        [one] the only trial
       *[other] all { $trials } trials
    }: { $threshold }
expected-missed = { $example }; trials with this: { $missed } of { $trials }
expected-unmeasured = not known, so missed: { $threshold } (no trial was measured)
workers-held = Memory of { $name }'s worker processes ({ $n } of them, median and largest): resident { $resident } and { $resident_most }, their share of it (PSS) { $proportional } and { $proportional_most }, nobody else's (USS, what is swapped out included) { $own } and { $own_most }; { $shared } are shared or held by the rest of the server (looks: { $looks }, one took { $took }{ $after ->
        [0] )
       *[other] ; { $after } of them after the load)
    }
workers-most-in = Most memory of one worker in { $cell }:
workers-fit-planned = { $fit } { $fit ->
        [one] worker like the largest fits
       *[other] workers like the largest fit
    } into the { $memory } that the plan gives: ({ $memory } - { $shared }) / { $own }; dividing by the { $resident } of resident memory would say { $naive }
workers-fit-available = { $fit } { $fit ->
        [one] worker like the largest fits
       *[other] workers like the largest fit
    } into the { $memory } that were available to the server: ({ $memory } - { $shared }) / { $own }; dividing by the { $resident } of resident memory would say { $naive }
workers-fit-limit = if each page took all of memory_limit ({ $limit }): { $fit }
label-cell = cell
label-run = run
label-began = began
label-server = server
label-host = host
label-seed = seed
label-version = webdyno
label-placement = placement
label-plan = The plan, parameters filled in
label-notes = Notes
label-log = End of the server's error log
label-ruled-out = What it was not
label-seconds = seconds since the load began
label-percentile = percent of answers
label-as-table = The same as a table
label-typical = median trial of its cell
leads-to = leads to: { $effect }
told-as-effect = as a result: { $finding }
told-as-cause = what caused it: { $finding }
in-some-trials = { $limit } (in { $trials ->
        [one] the only trial
       *[other] { $n } of { $trials } trials
    })
no-diagnosis = no trial counts, so nothing can be said
list-separator = {", "}
quoted = “{ $text }”
forest-caption = Requests per second as a multiple of the baseline's, on a logarithmic axis.
legend-ratio = ratio
legend-interval = { $confidence } % interval
legend-margin = equivalent: within the plan's margin of ±{ $margin } %
legend-margins = equivalent: within the margin of the question
latency-caption = Latency at or below which each share of the answers came, all trials of a cell merged. Both axes are logarithmic; lower is better.
trials-caption = One panel per kind of measure, on one time axis: seconds (s) since the load began. The median trial of each cell is open.

# ---- what happened over time ----
panel-requests = Requests per second
panel-cpu = CPU of the host
panel-memory = Memory
panel-swap = Swap traffic
panel-pressure = Pressure (PSI): share of time
panel-workers = Workers
series-good = good answers
series-failed = failures
series-cpu-busy = user + system
series-cpu-iowait = iowait
series-cpu-group = the server's group
series-group-memory = group, memory
series-group-swap = group, swap
series-group-limit = group, limit
series-host-memory = host, memory used
series-host-swap = host, swap used
series-swap-in = read back from swap
series-swap-out = written to swap
series-group-psi-memory = group, memory full
series-group-psi-io = group, I/O full
series-group-psi-cpu = group, CPU some
series-host-psi-memory = host, memory full
series-host-psi-io = host, I/O full
series-host-psi-cpu = host, CPU some
series-workers = workers
series-busy-workers = busy workers
series-told-busy = workers at work, as the server tells
series-pool-active = processes of PHP-FPM at work
series-pool-queue = waiting for PHP-FPM
series-accept-queue = accept queue

same-as-baseline = as “{ $cell }”: { $limit }

# ---- causes ----
cause-host-disturbed = the host was disturbed: it swapped for something other than the server, so this trial says nothing about the server
cause-host-disturbed-advice = Stop what else uses memory on this host, or leave it more, and measure again.
cause-memory-thrash = memory thrash: the server swaps instead of working
cause-memory-thrash-advice = More CPUs or a faster disk would not help; using less memory at a time would.
cause-out-of-memory = out of memory: the kernel killed processes
cause-out-of-memory-advice = Lower the worker limit or give the server more memory.
cause-worker-limit-too-high = the worker limit is too high for the memory
cause-worker-limit-too-high-advice = Accept no more requests at once than memory holds; further requests wait in the accept queue at no cost.
cause-file-cache-thrash = file cache thrash: memory is too small for the files in use, and they are read again and again
cause-file-cache-thrash-advice = Fewer workers or more memory would help; a faster disk only a little.
cause-accept-queue-overflow = the accept queue overflowed: connections were turned away
cause-accept-queue-overflow-advice = Clients see delays of 1, 3 and 7 seconds. Raise ListenBacklog (and net.core.somaxconn), or answer faster; unless the queue is short on purpose, so that nobody is served who has given up.
cause-disk-bound = disk-bound: requests waited for the disk, and not for swap
cause-lock-serialised = serialised by a lock: about one request is worked on at a time
cause-worker-limit-too-low = the worker limit is too low: requests queue while CPU and memory have room
cause-worker-limit-too-low-advice = Raise the worker limit as far as memory allows.
cause-workers-starting = too few workers yet: requests queue while the server still starts those that it may have
cause-workers-starting-advice = Have more of them from the start (StartServers, MinSpareServers or MinSpareThreads; of PHP-FPM pm.start_servers and pm.min_spare_servers), or measure when they are there: a longer [warmup].
cause-workers-starting-confirm = With as many from the start as the limit allows the rate rises.
cause-processes-ending = processes end too often: requests queue while the server begins others
cause-processes-ending-advice = Raise MaxConnectionsPerChild (MaxRequestsPerChild is its earlier name), or set it to 0, which lets processes live on. Apache looks only once a second whether others are to be begun.
cause-processes-ending-confirm = With MaxConnectionsPerChild 0 the rate rises and the accept queue shrinks.
cause-too-few-threads = too few threads in the server: requests wait, unread, while the CPU has room
cause-too-few-threads-advice = Raise the number of its own threads or processes (maxThreads of Tomcat, --threads or --workers of gunicorn) as far as memory allows. If the rate stays, find what they wait for.
cause-too-few-threads-confirm = With twice as many the rate rises. While requests wait, ss -tln or ss -tn shows a Recv-Q above 0 at its port.
cause-worker-limit-reached = the worker limit is reached
cause-worker-limit-right = the worker limit is reached, and right: more workers would not help
cause-failures-dominate = too many failures for the rate to mean much
cause-no-answers = nothing was answered: all that was asked for was still in flight at the end
cause-offered-concurrency = the offered concurrency: the client asked for no more at once
cause-cpu-bound = CPU-bound: the CPUs the server may use are busy with work
cause-generator-saturated = the load generator itself was at its limit
cause-generator-saturated-advice = Give the generator more threads or CPUs; this says nothing about the server's limit.
cause-one-core-busy = about one CPU is busy
cause-monitor-unfit = the readings are too few, or too far apart, to judge by
cause-unexplained = no rule explains it
cause-not-measured = nothing was measured

# ---- what it was not, and why ----
not-cpu-reclaim = Not a shortage of CPU: its time went to the kernel looking for memory, not to the application.
not-cpu-waiting = Not a shortage of CPU: CPU use is user plus system, and the rest of the time was spent waiting even where idle is 0.
not-cpu-load-average = Idle 0 and a high load average are not a shortage of CPU: both count tasks that only wait for memory or a disk.
not-disk-swap = Not a slow disk: it was busy with swap, and a faster one would only thrash faster.
not-disk-iowait = Not shown to be a slow disk: the CPU had nothing else to do while a disk was waited for, and iowait says no more than that.
not-memory-swap-resident = Not a shortage of memory: swap was in use, but nothing was read back from it.

# ---- what the numbers are ----
number-readings = readings
number-observed = observed for
number-connections = asked concurrency
number-concurrency = requests in flight
number-goodput = good answers per second
number-failures = failures
number-failed-share = failed share
number-host-cpu-user = CPU user
number-host-cpu-system = CPU system
number-host-cpu-idle = CPU idle
number-host-cpu-iowait = CPU iowait
number-host-cpu-steal = CPU steal
number-host-cpu-busy = CPU use (user + system)
number-cpu-used = use of the server's CPUs
number-cpu-pressure = group's CPU pressure (some)
number-host-cpus = CPUs of the host
number-server-cpus = CPUs of the server
number-server-cores = CPUs the server kept busy
number-other-cores = CPUs others kept busy
number-load-average = load average
number-runnable = runnable tasks
number-group-memory-some = group's memory pressure (some)
number-group-memory-full = group's memory pressure (full)
number-host-memory-some = host's memory pressure (some)
number-host-memory-full = host's memory pressure (full)
number-group-io-some = group's I/O pressure (some)
number-group-io-full = group's I/O pressure (full)
number-host-io-some = host's I/O pressure (some)
number-host-io-full = host's I/O pressure (full)
number-group-refault-per-request = read back from swap per answer
number-group-file-refaults = group's files read again per second
number-host-file-refaults = files read again per second
number-group-major-faults = group's major faults per second
number-host-major-faults = host's major faults per second
number-group-swap-peak = group's most swap
number-host-swap-peak = host's most swap
number-host-swap-in = swapped in per second
number-host-swap-out = swapped out per second
number-group-memory-limit = group's memory limit
number-host-memory = host's memory
number-memory-base = memory before the load
number-worker-cost = memory per request
number-workers-that-fit = workers that fit
number-group-limit-hits = limit hits
number-oom-kills = processes killed
number-host-disk-bytes = disk bytes per second
number-host-disk-busy = disk busy
number-host-disk-queue = disk queue
number-swap-share-of-disk = swap's share of disk traffic
number-connections-each = connections for each process (MaxConnectionsPerChild)
number-processes-ending = processes that end in a second
number-least-workers = fewest workers
number-worker-limit = worker limit
number-workers = most workers
number-busy-workers = busy workers
number-pool-limit = processes of PHP-FPM at most (pm.max_children)
number-pool-active = processes of PHP-FPM at work
number-pool-queue = waiting for a process of PHP-FPM
number-pool-limit-reached = times pm.max_children was reached
number-accept-queue = accept queue
number-accept-queue-most = longest accept queue
number-accept-queue-limit = accept queue limit
number-host-listen-overflows = connections turned away
number-turned-away = their part of the requests, or of their time
number-lock-waiters = processes waiting for a lock
number-generator-share = CPU use of the generator
number-unwatched = time between readings too far apart
number-longest-gap = longest time between readings
number-monitor-faults = sampler's own major faults

# ---- what ab printed, imported ----
section-origins = Where they stand
section-wrong = What cannot be true
section-doubtful = What must be known
section-notes = How ab prints
import-about = { $n ->
        [one] One report
       *[other] { $n } reports
    } of ab, measured elsewhere and imported. webdyno measured none of it: what the machine did meanwhile, and in which order the runs were made, is not known.
import-lost = No report stands here by today's rules.
import-family-microseconds = ab 2.0.40 to that of Apache 2.2
import-family-milliseconds = ab 2.3 of Apache 2.2 or an early 2.4
import-family-today = ab 2.3 of Apache 2.4
import-family-trunk = ab of Apache's next version
import-family-none = no ab prints this layout
import-row-line = line
import-row-requests = requests
import-row-connections = at a time
import-note = r/s: good requests per second, that is complete ones less the failed ones or those with a status other than 2xx, whichever are more. Times are ab's.
import-compared = { $other }: { $ratio } times the good requests per second of { $baseline } ({ $change } %).
import-not-compared = { $other } and { $baseline } cannot be compared: one of them has a run without a good request.
import-one-run-each = One run each supports no interval: how far two runs of one setting lie apart by themselves is not known.
import-one-run = One of the two is a single run, which supports no interval: how far its runs lie apart is not known.
import-no-spread = The runs of each group are equal to the last digit, which supports no interval: are they copies of one run?
import-interval = { $confidence } % interval { $low } to { $high } (Welch's t, runs: { $baseline } and { $other }, p = { $p }).
import-order = The order of the runs was not randomised. Whatever else changed between them is in these differences too, so there is no verdict.
import-sample = A run is one sample, however many requests it holds.
import-other-load = The loads differ too: { $what }.
import-load-connections = connections { $a } against { $b }
import-load-path = asked for { $a } against { $b }
import-load-keep-alive = keep-alive { $a } against { $b }
import-made-line = imported { $taken }, webdyno { $version }
slip-skipped = Lines inside a report that are none of ab's, skipped: { $n }.
slip-fragment = This begins like a report, but lacks the lines that make one.
slip-unpadded-seconds = “{ $written }” means { $seconds } s: this ab printed microseconds without their zeros. Only so do the other figures fit.
slip-differs = “{ $label } { $printed }” should be { $expected }, by { $formula }.
slip-differs-follows = “{ $label } { $printed }” should be { $expected }, by { $formula }. What stands there follows { $follows }.
slip-whole-kilobytes = Transfer rate { $printed }, exactly { $exact }: this ab divides by 1024 in whole numbers.
slip-failures-in-rate = “Requests per second: { $printed }” counts failures. At most { $good } of { $complete } were good: { $rate } per second.
slip-claim = “{ $written } %” stands here, but no two of the rates before differ so. Nearest are those in lines { $base } and { $line }: { $nearest } %.
slip-table-differs = { $rate } per second and { $time } ms stand in one table, but { $time } ms per request are { $gives } per second, and no number of connections in this text makes one of the other.
slip-failure-sum = Failed requests: { $failed }, but their causes add up to { $causes }.
slip-missing = No ab leaves out: { $labels }. Either lines were cut, or ab did not write this.
slip-keep-alive-unused = Keep-alive was asked for (-k), but no answer came over a kept connection (complete: { $complete }).
slip-body-bytes-in-flight = The bytes of the bodies would do for more answers than were complete: { $answers } to { $complete }. Answers in flight when ab stopped are counted in bytes only.
slip-body-bytes = The bytes of the bodies are those of another number of answers than were complete: { $answers } to { $complete }, although none failed.
slip-bodies-exceed-total = Bytes of bodies: { $html }, more than the bytes in all: { $total }.
slip-capped = With -t, ab stops at 50000 requests, and this test ended there: perhaps long before its time.
slip-one-wave = As many connections as requests ({ $complete }) are a single wave: its percentiles are the order in which it drained, not those of a steady load.
slip-few-waves = Requests for each connection at a time: { $waves }. Start and end weigh heavily.
slip-header-bytes-in-flight = Bytes of heads per complete answer differ between runs of one thing: { $list }. Answers in flight when ab stopped can explain it.
slip-header-bytes = Bytes of heads per complete answer differ between runs of one thing: { $list }. The server did not answer alike.
slip-little = Rate times mean time gives { $in_flight } under way on average; asked for were { $asked }.
slip-row-order = The times of “{ $row }” are out of order.
slip-parts-differ = Connecting and processing take { $parts } ms on average, but the total is { $total } ms.
slip-percentile-falls = The percentile { $percent } % is below a lower one.
slip-percentile-differs = { $percent } %: { $listed } ms in the percentiles, { $table } ms in the table of times.
slip-percentile-odd = { $percent } %: { $listed } ms in the percentiles, { $table } ms in the table of times. With an odd number of requests ab takes the wrong ones for its median.
slip-skewed = The longest request took { $max } ms, with a median of { $median } ms and a mean of { $mean } ms: some waited for something else, such as a connection to be tried again, and the rate contains that.
slip-glued = “{ $written }” is read as 100 % and { $value } ms: the sign and the blanks between them were lost.

# ---- the whole terminal of a watch ----
watch-cpu = CPU
watch-busy = busy { $share } %
watch-iowait = waiting for disks { $share } %
watch-steal = stolen { $share } %
watch-load = load { $load }
watch-runnable = runnable { $n }
watch-blocked = blocked { $n }
watch-memory = Memory
watch-used = used { $size }
watch-cache = cache { $size }
watch-available = to be had { $size }
watch-of = of { $size }
watch-swap = Swap
watch-no-swap = none
watch-in = in { $rate }
watch-out = out { $rate }
watch-faults = major faults { $n }/s
watch-disks = Disks
watch-read = read { $rate }
watch-written = written { $rate }
watch-operations = operations { $n }/s
watch-under-way = under way { $n }
watch-network = Network
watch-received = received { $rate }
watch-sent = sent { $rate }
watch-loopback = loopback { $rate }
watch-pressure = Pressure (PSI)
watch-no-pressure = this kernel does not tell it
watch-on-memory = memory { $share } %
watch-on-io = I/O { $share } %
watch-on-cpu = CPU { $share } %
watch-all-on-memory = everybody on memory { $share } %
watch-all-on-io = everybody on I/O { $share } %
watch-accept = Accept queue
watch-queued = waiting { $n }
watch-room = room for { $n }
watch-overflows = refused { $n }/s
watch-retransmits = sent again { $n }/s
watch-time-wait = TIME_WAIT { $n }
watch-group = Control group
watch-own = own { $size }
watch-files = files { $size }
watch-swapped = swap { $size }
watch-tree = Server
watch-workers-busy = busy { $n }
watch-workers-idle = idle { $n }
watch-processes = processes { $n }
watch-resident = RSS { $size }
watch-host = { $name }, Linux { $kernel }, CPUs: { $cpus }
watch-live = live
watch-paused = paused
watch-back = { $length } back
watch-playing = recording, { $speed }x
watch-stopped = recording, paused
watch-over = end of the recording
watch-late = the last reading came { $length } late
watch-suspended = the machine was suspended for { $length }
watch-clock-forward = the clock was set forward by { $length }
watch-clock-back = the clock was set back by { $length }
watch-blind = between the last two readings passed { $length }
watch-column = a column is { $length }
watch-keys = q end  p pause  ←→ look back  +- zoom  ? help
watch-help = Keys
watch-help-end = q: end
watch-help-pause = p or space: pause, and go on
watch-help-step = ← →: a column back or forth; Page Up, Page Down: a screen
watch-help-ends = Home, End: the first reading there is, and the newest
watch-help-zoom = + -: less or more time in a column
watch-help-speed = < >: a recording slower or faster
watch-help-colours = A chart's two colours are those of the two numbers below its name; its height is the number at the right.

# --- webdyno check ---------------------------------------------------------------------------------------------------
section-check-server = The server
section-check-takes = What it takes
section-check-step = The next step
section-check-others = Also worth a look
section-check-climb = The windows
check-made = { $began }, webdyno { $version }, { $end }
check-default = default
check-at-once = at once
check-good = good/s
check-p50 = p50
check-p99 = p99
check-failed = failed
check-kind-prefork = Apache prefork (a process for each request)
check-kind-worker = Apache worker (threads; a kept connection holds one)
check-kind-event = Apache event (threads; a kept connection holds none)
check-kind-apache = Apache
check-kind-nginx = nginx
check-kind-other = no server whose configuration webdyno can read
check-who-socket = { $kind }, by its own name { $server }. The socket is held by process { $pid }; processes: { $processes }, threads: { $threads }.
check-who-name = { $kind }, by its own name { $server }. Found by its name: process { $pid }; processes: { $processes }, threads: { $threads }.
check-who-not = The server, by its own name { $server }: none of its processes is seen here, so nothing is known of its settings and its memory: it is not controlled.
check-file = Configuration: { $file }
check-limit = { $name } { $value } ({ $place })
check-backlog = Connections that may wait to be accepted: { $n }
check-group = It lives in a memory group of { $limit }.
check-cpus = CPUs that it may use, by its group or because it is bound to some: { $n }
check-workers = Workers: { $n }; the largest has { $largest } ({ $measure }).
check-fit = A request at work takes up to { $cost } ({ $measure }): { $fit } fit into the { $room } that are left for them, of { $memory }.
check-fit-program = A request at work takes up to { $cost }, of which { $program } are a program that is started for it: { $fit } fit into the { $room } that are left for them, of { $memory }.
check-fit-pool = PHP-FPM, pool { $pool }: a request at work takes up to { $cost } ({ $measure }): { $fit } fit into the { $room } that are left for them, of { $memory }.
check-measure-unshared = unshared memory, USS
check-measure-anonymous = resident without files, what is shared with the parent included
check-unseen-owner = Which process listens can be seen by root only: run it with sudo to learn the settings and the memory.
check-unseen-named = Which process listens can be seen by root only; it was found by its name.
check-unseen-elsewhere = The server is not on this machine: only its answers are seen.
check-unseen-shares = What a worker shares with nobody can be seen by root only: its size is an upper bound, and fewer workers are said to fit than do.
check-unseen-changed = The configuration is younger than the server ({ $file }): if it was not read again since, other values are in force.
check-unseen-pool = Requests are passed by FastCGI to { $places }, where no pool of PHP-FPM was found (names of hosts are not looked up): limit, memory and queue of who works there are not known.
check-note = { $note }
check-unseen-file = Not read: { $why }
check-unseen-files = Further files that were not read: { $n }
check-page = The page: status { $status }, { $bytes }, { $time } when it is asked for alone.
check-page-static = It looks like a file.
check-page-dynamic = It looks made by a program.
check-page-encoding = It comes compressed ({ $encoding }).
check-page-location = It points to { $location }, which is not followed.
check-page-cookie = It sets a cookie, which each connection sends back from then on, as a browser does: a session for each connection.
check-page-closes = The server closes the connection after each answer.
check-takes = { $rate } good answers/s (95 % interval { $low } to { $high }) with { $connections } at once
check-takes-once = { $rate } good answers/s with { $connections } at once; a single window, so nothing is known of its spread
check-takes-silent = { $rate } good answers/s with { $connections } at once, on average; windows without any answer: { $silent } of { $windows }, so no interval holds
check-latency = Half of them took no more than { $p50 }, 99 % no more than { $p99 }.
check-latency-few = Half of them took no more than { $p50 }; there were too few to tell what 99 % took.
check-summit-plateau = More at once only made them wait.
check-summit-cliff = More at once brought far fewer answers: there is a cliff, and it was left alone.
check-summit-failures = The climb ended because requests failed.
check-summit-memory = The climb ended before the next step could have used up the memory.
check-summit-guard = A guard ended the load before the server came to harm.
check-summit-files = The climb ended at the most connections that this process may have open files for.
check-summit-ceiling = The climb ended at the most connections that a check opens.
check-summit-time = The climb ended because the time was over; --budget gives it more.
check-summit-no-answer = Not one request was answered.
check-summit-refused = Nothing was measured: only the first requests were sent, as the page is not there to be had.
check-generator = The load was made on this machine and took up to { $percent } % of its CPUs: from elsewhere the server could do more.
check-others = Other programs took { $percent } % of the CPUs meanwhile: on a calm machine the server could do more.
check-others-named = Other programs took { $percent } % of the CPUs meanwhile: { $names }. They were at work while nothing was sent, too.
check-foreign = Others used the server meanwhile (connections at once: { $n }): what it takes is more than was measured.
check-foreign-opened = Connections that were not ours came in on this machine meanwhile: { $n }. If they were for this server, it takes more than was measured.
check-wide = The windows differ by much: the machine or the server is not steady.
step-held-all = No worker is free: idle connections that clients keep open hold all of them. Set KeepAlive Off, or KeepAliveTimeout 1, or use the event MPM. { $name } is { $from } ({ $place }).
step-redirect = This address only points to another one (status { $from }): check { $to } instead.
step-status = The page answers with status { $from }, not with 200: mend that, or give the address that is meant.
step-silent = The server accepted connections and answered none in time: look at its error log and at what is behind it.
step-memory = Lower { $name } from { $from } to { $to } ({ $place }): memory does not hold as many workers as are allowed, and a rush would make the machine swap or kill processes.
step-pool-memory = Lower { $name } of PHP-FPM from { $from } to { $to } ({ $place }): memory does not hold as many workers as are allowed, and a rush would make the machine swap or kill processes.
step-host-disturbed = This machine swaps for somebody else: calm it, then check again.
step-thrash = Memory is too small for what is worked on at once: lower { $name } (now { $from }, { $place }) until nothing is swapped, or give it more memory.
step-memory-small = Memory is too small for what is worked on at once: let less be worked on at once, or give it more memory.
step-keep-alive = Idle connections that clients keep open hold workers that others wait for. Set KeepAlive Off, or KeepAliveTimeout 1, or use the event MPM. { $name } is { $from } ({ $place }).
step-connections = Raise { $name } from { $from } to { $to } ({ $place }): nginx has no connection left for those who come and cuts them off.
step-backlog = Raise { $name } from { $from } to { $to } ({ $place }; net.core.somaxconn must be as high): the queue at the door is full, and clients who find it so wait 1, 3, 7 seconds.
step-pool-queue = Raise { $name } from { $from } to { $to } ({ $place }): as many requests wait for the pool of PHP-FPM as its queue holds, and the web server waits with them or turns visitors away (502).
step-raise-pool = Raise { $name } of PHP-FPM from { $from } to { $to } ({ $place }): all its workers are busy and requests wait, while CPU and memory have room. Then check again.
step-raise = Raise { $name } from { $from } to { $to } ({ $place }; ServerLimit must be as high): all workers are busy and requests wait, while CPU and memory have room. Then check again.
step-queue-full = The queue at the door overflows though it is not short ({ $name } { $from }): answer faster, or allow more workers. Up to { $to } may help against short rushes ({ $place }).
step-processes-ending = Set { $name } to { $to } (now { $from }, { $place }), or to many times as much: processes end faster than Apache begins others, and requests queue meanwhile.
step-processes = Set { $name } to { $to } (now { $from }, { $place }): one process does all the work while other CPUs lie idle.
step-threads = The server has too few threads or processes of its own: requests wait, unread, while the CPU has room. Raise their number (maxThreads of Tomcat, --threads or --workers of gunicorn) as far as memory allows; if that brings nothing, find what they wait for.
step-failures = Requests failed when more came at once: look at the server's error log first. A limiter (mod_admission, mod_qos, limit_conn) turns requests away on purpose, and says so there.
step-lock = Requests wait for one file lock (a session, a counter): no setting of the server helps, only the page itself.
step-disk = The disk is what limits it: cache more, write less, or take a faster one. No setting of the server helps.
step-generator = The load generator was at its limit, not the server: run the load from another machine.
step-cpu = The settings are right for this page: the CPU is what limits it. Make the page cheaper (cache, opcode cache), or give it more CPUs.
step-limit-right = Leave { $name } at { $from } ({ $place }): all workers are busy, and so are the CPUs or the memory.
step-limit-reached = Leave { $name } at { $from } ({ $place }): all workers are busy, and little of the CPUs is left for more.
step-time = Nothing limited it yet when the time was over; give it more by --budget.
step-files = The check could open no more connections, for want of open files, so what limits the server was not seen: raise the limit (ulimit -n) and check again.
step-ceiling = Nothing limited it at the most connections that a check opens: it waits for something else than CPU, memory and workers, such as a database.
step-others = Other programs have the CPUs, so what limits the server cannot be told: end those that are named below, then check again.
step-beyond = Programs beyond the server use the CPUs while it works. If they work for it, as a database does, the CPU is what limits it; else end them, then check again.
step-not-found = No setting was found that holds it back.
cause-keep-alive-held = held by kept connections: idle clients hold workers that requests wait for
cause-keep-alive-held-advice = Set KeepAlive Off, or KeepAliveTimeout 1, or use the event MPM.
number-held-workers = held by idle connections
number-at-once = worked on at once
number-cpu-per-answer = CPU time per answer
number-memory-room = memory left for workers
number-all-workers = all allowed workers would take

# ---- a diagnosis: what would confirm it, how sure it is, what to do ----
cause-throttled = throttled: the server uses up its limit of CPU time and is held back
cause-throttled-advice = Give its group more CPU time (cpu.max, CPUQuota), or start fewer threads that use it up at once.
cause-throttled-confirm = nr_throttled in cpu.stat stands still with twice the limit, and the rate rises.
cause-network = the network: answers wait to be sent, or are lost on the way
cause-network-advice = Send less (compress, cache), find what loses packets, or use a faster link. A client that takes answers slowly looks the same.
cause-network-confirm = The same load over loopback, or with a small page, is faster; tc -s qdisc and ip -s link show drops.
cause-backend-serialised = something behind the server lets only a few requests in at once
cause-backend-serialised-advice = Look at what the page waits for: a database lock, a connection pool, a service with one worker. More workers here would only wait there.
cause-backend-serialised-confirm = With half the connections the rate stays and the latency halves; the backend shows one busy worker or a queue.
cause-held-in-front = the server in front holds requests back: it passes only so many at once on to those behind it
cause-held-in-front-advice = If the servers behind have workers, CPU and memory to spare, let more through (maxconn of HAProxy; max of ProxyPass, which counts for each process; a queue of a module in front). If not, leave it: requests wait where they do least harm.
cause-held-in-front-confirm = With twice as many passed on at once the rate rises, or the queue moves to the servers behind.
cause-out-of-ports = the client's machine had no ports or file descriptors left
cause-out-of-ports-advice = Keep connections alive, widen net.ipv4.ip_local_port_range, or raise ulimit -n. This says nothing about the server.
cause-out-of-ports-confirm = ss -s shows tens of thousands of sockets in TIME_WAIT; with kept connections the failures are gone.
cause-foreign-traffic = foreign traffic: others asked the server as well
cause-foreign-traffic-advice = Measure when nobody else is there, or on an instance of its own.
cause-foreign-traffic-confirm = The server's access log has addresses or pages that are not of this load.
cause-stolen = stolen: the hypervisor gave CPU time to others
cause-stolen-advice = Measure again at another time, or on a machine with CPUs of its own. No setting of the server helps.
cause-stolen-confirm = st in vmstat is not 0 while another machine of the same host works.
cause-pressure-building = memory is getting short
cause-pressure-building-advice = Leave it at this, or give it more memory: with a little more load it will swap instead of working.
cause-pressure-building-confirm = memory.pressure rises with the number of connections.
cause-host-disturbed-confirm = vmstat on the host shows si above 0 while this server does nothing.
cause-memory-thrash-confirm = With half as many requests at once the rate rises, and pswpin in /proc/vmstat stands still.
cause-out-of-memory-confirm = dmesg names the processes that were killed.
cause-worker-limit-too-high-confirm = With the limit at the number that fits, the rate rises and nothing is swapped.
cause-file-cache-thrash-confirm = workingset_refault_file in memory.stat stands still with more memory.
cause-accept-queue-overflow-confirm = nstat -az TcpExtListenOverflows grows, and connecting takes about 1 s for some.
cause-disk-bound-advice = Read less (cache, more memory), write less (buffered logs), or use a faster disk. More workers would only wait, too.
cause-disk-bound-confirm = io.pressure is 0 when the same files are in memory.
cause-lock-serialised-advice = Hold the lock for less, or split it. More workers or CPUs do not help.
cause-lock-serialised-confirm = /proc/locks names the file and who waits for it (-> lines).
cause-keep-alive-held-confirm = The scoreboard is full of K; with KeepAlive Off the queue is gone.
cause-worker-limit-too-low-confirm = With twice the limit the rate rises and the accept queue shrinks.
cause-worker-limit-reached-advice = Try a limit half as high and one twice as high: webdyno tells which is better.
cause-worker-limit-reached-confirm = With twice the limit the rate either rises or does not.
cause-worker-limit-right-advice = Leave it. To answer more, use less CPU or memory per request, or get more of it.
cause-worker-limit-right-confirm = With twice the limit the rate stays, and latency or memory rises.
cause-failures-dominate-advice = See which failures they are, and the end of the error log, before anything is tuned.
cause-failures-dominate-confirm = The same page asked for once, by hand, fails the same way.
cause-no-answers-advice = Ask for the page once, by hand, and see how long it takes and what the error log says. If it answers, measure for longer than that.
cause-no-answers-confirm = The same page asked for once, by hand, takes longer than the window, or never answers.
cause-offered-concurrency-advice = Ask with more connections to find the limit of the server.
cause-offered-concurrency-confirm = With twice the connections the rate about doubles and the latency stays.
cause-cpu-bound-advice = Use less CPU per request (cache, opcode cache, fewer modules), or get more CPUs. No limit needs to be raised.
cause-cpu-bound-confirm = A page that computes less is answered at a rate that is higher by as much.
cause-generator-saturated-confirm = With twice the threads the rate rises while the server has not changed.
cause-one-core-busy-advice = Use more workers or processes, or look for what runs in one thread.
cause-one-core-busy-confirm = top -H shows one thread of the server near 100 %.
cause-monitor-unfit-advice = Measure again with CPU to spare for the monitor, and not while the machine is suspended or stopped.
cause-monitor-unfit-confirm = The readings of the report have gaps at the times that are named.
cause-unexplained-advice = Compare the numbers above with those of a run in which it was faster.
cause-unexplained-confirm = Another load, with half or twice the connections, shows what changes.
cause-not-measured-advice = See why the trial ended.
confidence-sure = sure
confidence-likely = likely
confidence-possible = possible
how-sure = How sure: { $confidence }.
how-sure-but = How sure: { $confidence }, because { $doubts }.
unsure-concluded = it is concluded from what else is ruled out
unsure-near = the thresholds were crossed by little
unsure-short = the readings are few
unsure-blind = the readings have gaps
unsure-host-numbers = the whole host's numbers stand for the server's
unsure-others = others took part
unsure-behind = what stands behind the server may let in no more
unsure-fewer = memory holds fewer workers like the largest: a lower limit may do better
unsure-longer = most answers take much longer than the fastest: they may wait inside the server, for a thread or a lock
unsure-trials-disagree = other trials came to something else
to-confirm = To confirm: { $what }
all-cells = all cells ({ $n })
number-range = { $from } to { $to }
limit-at-least = { $value } (limit: { $limit } or more)
limit-above = { $value } (limit: above { $limit })
limit-below = { $value } (limit: below { $limit })
number-throttled-periods = periods in which the CPU limit was used up
number-throttled-time = seconds held back each second
number-host-available = memory of the host available
number-page-alone = a page takes alone
number-host-fullest-queue = fullest accept queue of another socket
number-queue-behind = connections waiting at the doors behind
number-accepted-behind = connections accepted by the servers behind
number-held-in-front = requests held in the server in front
number-run-queue = runnable tasks for each CPU of the server
number-unsent = requests that never left
number-retransmits = segments sent again
number-link-use = use of the fullest link
number-sending = connections whose answers find no room on the way
number-unread = accepted connections with a request that nobody has read
number-thread-wait = a request waits for a thread
number-foreign-weight = others' requests for each of ours
explain-room = nothing is used up: there is room
explain-now = What limits it now: { $limit } ({ $confidence }).
explain-free = What limits it now: { $limit }.

# --- webdyno admission ------------------------------------------------------------------------------------------------
admission-server = { $module } of the server with process { $pid }
admission-server-since = { $module } of the server with process { $pid }, counting since { $since } ({ $length })
admission-file = read from { $file }
admission-stale = Written { $age } ago: the server is gone, or its controller. What follows is what it said last.
admission-ahead = Written { $age } ahead of this machine's clock: the clock was set back, and nobody writes any more. What follows is what was said last.
admission-refused = The control file { $file } is refused, the values before it stay in force: { $error }
admission-engine-observe = AdmissionEngine observe: nobody is turned away, whatever the modes of the groups; it is only counted who would be.
admission-engine-off = AdmissionEngine off: nothing is limited, whatever the modes of the groups.
admission-engine-mixed = AdmissionEngine is not the same in all virtual hosts.
admission-table-full = Requests let through because the table had no place for their entry: { $n }. Raise AdmissionTableSize.
admission-cells-full = Requests let through because their entry had no free cell: { $n }.
admission-owners-full = Processes of the server that found no place in the table: { $n }.
admission-no-memory = Requests let through while there was no shared memory for the table: { $n }.
admission-memory = Memory budget: { $held } of { $limit } held; waiting for it: { $waiting }
admission-workers = Workers that wait: { $held } of { $limit }
admission-no-groups = No group is configured (AdmissionGroup).
admission-none = none
admission-row-mode = mode
admission-row-limit = limit (configured)
admission-row-held = held
admission-row-fullest = fullest
admission-row-waiting = waiting
admission-row-admitted = admitted
admission-row-queued = after a wait
admission-row-rejected = rejected
admission-row-timeout = timed out
admission-row-gone = client gone
admission-row-would-reject = would reject
admission-row-would-queue = would wait
admission-row-open = let through
admission-row-bypass = bypassed
admission-row-reaped = taken back
admission-row-long-hold = held too long
admission-row-let-in-rate = let in/s
admission-row-away-rate = turned away/s
admission-row-hold-mean = held, mean
admission-row-hold-p50 = held, p50
admission-row-hold-p99 = held, p99
admission-row-wait-p50 = wait, p50
admission-row-wait-p99 = wait, p99
admission-note-rates = Rates are means since counting began.
admission-note-rates-between = Rates are those of the time between the last two looks.
admission-note = The limit bounds each entry (a file, a host, a client): “fullest” is what the fullest one holds, “held” what all hold. Waits are those of requests that had to wait.
admission-entries = Entries
admission-entry = { $group }  { $label }: held { $held }, waiting { $waiting }, the oldest for { $oldest }
admission-entry-lingering = { $group }  { $label }: held { $held }, of these by programs whose request is over { $lingering }, waiting { $waiting }, the oldest for { $oldest }
admission-entries-more = { $group }  entries that hold no more than these: { $n }
