# レポートの読者が目にするすべての文(日本語)。id は en.ftl と同じ。
# 数値は文字列に整形済みで渡される。

# ---- 表 ----
row-time = 時間 (秒)
row-rate = r/s
row-min = 最小 ({ $unit })
row-mean = 平均 ({ $unit })
row-median = 中央値 ({ $unit })
row-p99 = p99 ({ $unit })
row-max = 最大 ({ $unit })
row-failed = 失敗
row-trials = 試行
row-ratio = r/s の比
row-interval = { $confidence } % 区間
row-verdict = 判定
role-baseline = 基準
role-again = A/A

# ---- 比較 ----
verdict-better = 改善
verdict-worse = 悪化
verdict-equivalent = 同等
verdict-inconclusive = 判定不能
verdict-better-long = 改善
verdict-worse-long = 悪化
verdict-equivalent-long = 同等（差は { $margin } % 未満）
verdict-inconclusive-long = 判定不能
verdict-inconclusive-more = 判定不能（あと { $blocks } ブロックほど必要）
compared = 1 秒あたりのリクエスト数は基準の { $ratio } 倍（{ $confidence } % 信頼区間 { $low }〜{ $high }、{ $blocks } ブロック）
compared-once = 1 秒あたりのリクエスト数は基準の { $ratio } 倍（1 ブロックのみのため区間なし）
compared-and-judged = { $compared }。判定: { $judgement }。
noise-floor = A/A: 同じ設定のまま基準をもう一度測ると { $ratio } 倍（{ $low }〜{ $high }）でした。何も変えていないので、{ $floor } 倍までの差はノイズの範囲です。

# ---- 注意 ----
warn-incomplete = この測定は最後まで終わっていません（{ $planned } 試行のうち { $made } 試行のみ）。
warn-no-baseline = 基準「{ $cell }」に有効な試行がないため、比較できません。
warn-invalid = { $made } 試行のうち { $n } 試行は無効で、集計に含めていません。
warn-ended-early = { $made } 試行のうち { $n } 試行は保護機能により途中で打ち切られました。打ち切りまでの測定値は集計に含めています。
warn-one-block = 1 ブロックしかないため、区間は求められません。
warn-few-blocks = { $blocks } ブロックしかないため、区間はノイズが正規分布に従うという仮定に頼っています。
warn-zero-variance = どのブロックでも比がまったく同じで、ばらつきを見積もれません。
warn-below-margin = 差はありますが、計画で指定した許容差より小さく、実用上は問題になりません。
warn-ranks-disagree = 符号付き順位検定の結果 (p = { $p }) と食い違っています。1 つのブロックだけで区間が決まっている可能性があります。
warn-within-noise = 差は A/A セルのノイズ（{ $floor } 倍）の範囲内なので、判定を取り下げました。
warn-again-differs = 何も変えていない A/A セルが基準の { $ratio } 倍になりました。測定中に何かが変動しています。小さな差は信用しないでください。
warn-generator-share = 負荷生成側がサーバと同じ CPU を使い、マシン全体の最大 { $share } % を消費しました。

# ---- 負荷のかけ方への疑問 ----
doubt-little = { $trials } 試行中 { $n } 試行でリトルの法則に合いません。並列度 { $asked } を指定しましたが、スループットと応答時間の積は { $computed } です。
doubt-concurrency = { $trials } 試行中 { $n } 試行で、実際の並列度が { $achieved } と、指定した { $asked } に届いていません。
doubt-generator = { $trials } 試行中 { $n } 試行で、負荷生成側が自分の限界に達しました（CPU 時間の { $share } %）。サーバにはまだ余力があるかもしれません。
doubt-few-waves = { $trials } 試行中 { $n } 試行で、接続あたりのリクエスト数が { $waves } と少なく、開始直後と終了間際の影響が大きくなっています。

# ---- 失敗 ----
failure-refused = 接続拒否
failure-reset = 接続リセット
failure-timeout = タイムアウト
failure-closed-early = 応答の途中で切断
failure-bad-response = HTTP として読めない応答
failure-length-differs = 本文の長さの不一致
failure-status = 2xx 以外のステータス（{ $statuses }）
failure-local = このマシンから送信できず

# ---- 測定と試行 ----
end-complete = 完了
end-unfinished = 未完了
end-interrupted = 中断
end-failed = 失敗: { $why }
outcome-complete = 完了
outcome-invalid = 無効: { $why }
stop-thrash = 途中で打ち切り: サーバのスラッシングが計画の上限を超えて続きました
stop-failures = 途中で打ち切り: 失敗したリクエストが多すぎました
stop-host-swap-in = 途中で打ち切り: ホスト自体でスワップインが始まりました
stop-host-memory = 途中で打ち切り: ホスト自体のメモリーが残り少なくなりました
stop-time-limit = 途中で打ち切り: 1 試行の制限時間に達しました
stop-interrupted = 中断のため集計外
trial-of = ブロック { $block }、{ $cell }
note-in-trials = 全 { $made } 試行中 { $n } 回: { $note }
note-sampler = 計測プロセスからの報告: { $note }
block-n = ブロック { $block }
placement-shared = サーバと負荷生成側は CPU を共有
placement-split = サーバは CPU { $server }、負荷生成側は CPU { $load }
confined = サーバのメモリーを { $memory } に制限（スワップなし）
confined-swap = サーバのメモリーを { $memory } に制限（スワップあり）
amount-requests = { $requests } リクエスト
amount-duration = { $duration }
amount-either = { $requests } リクエストまたは { $duration }（先に終わる方）
amount-open = 停止するまで
load-keep-alive = GET { $path }、並列度 { $connections }、{ $amount }、KeepAlive あり
load-close = GET { $path }、並列度 { $connections }、{ $amount }、KeepAlive なし
host-line = { $name }: CPU { $cpus } 個、メモリー { $memory }、スワップ { $swap }、Linux { $kernel }
made-line = { $began }、webdyno { $version }、{ $blocks } ブロック、シード { $seed }: { $end }

# ---- 見出しとラベル ----
section-warnings = 数値を読む前に
section-table = 結果
section-comparison = 基準との比較
section-diagnosis = 何が限界だったか
section-settings = 実際に有効だった設定の違い
section-trouble = 予定どおりに進まなかったこと
section-latency = 応答時間の分布
section-trials = 試行ごとの時間変化
section-plan = 計画とホスト
label-cell = セル
label-run = 測定
label-began = 開始
label-server = サーバ
label-host = ホスト
label-seed = シード
label-version = webdyno
label-placement = 配置
label-plan = 計画(パラメーター展開後)
label-notes = 備考
label-log = サーバのエラーログの末尾
label-ruled-out = 原因ではなかったもの
label-seconds = 負荷開始からの秒数
label-percentile = 応答の割合 (%)
label-as-table = 表で見る
label-typical = セルの中央値にあたる試行
leads-to = その結果: { $effect }
no-diagnosis = 有効な試行がないため、判断できません
list-separator = 、
forest-caption = 1 秒あたりのリクエスト数を基準に対する倍率で示したもの（線は { $confidence } % 信頼区間）。帯は計画で指定した許容差 ±{ $margin } %。
latency-caption = 応答のうちその割合までが収まる応答時間（セルの全試行を合算）。両軸とも対数目盛。低いほどよい。
trials-caption = 指標の種類ごとのグラフを同じ時間軸に並べたもの。各セルの中央値にあたる試行を開いてある。

# ---- 時間変化 ----
panel-requests = 1 秒あたりのリクエスト数
panel-cpu = ホストの CPU 使用率
panel-memory = メモリー
panel-pressure = 待ち時間の割合 (PSI)
panel-workers = ワーカー
series-good = 正常な応答
series-failed = 失敗
series-cpu-busy = user + system
series-cpu-iowait = iowait
series-cpu-group = サーバのグループ
series-group-memory = グループのメモリー
series-group-swap = グループのスワップ
series-group-limit = グループの上限
series-host-memory = ホストのメモリー使用量
series-host-swap = ホストのスワップ使用量
series-group-psi-memory = グループ memory full
series-group-psi-io = グループ io full
series-group-psi-cpu = グループ cpu some
series-host-psi-memory = ホスト memory full
series-host-psi-io = ホスト io full
series-host-psi-cpu = ホスト cpu some
series-workers = ワーカー数
series-busy-workers = 処理中のワーカー数
series-accept-queue = accept 待ち

same-as-baseline = 「{ $cell }」と同じ: { $limit }

# ---- 原因 ----
cause-memory-thrash = スラッシング: メモリー不足でスワップに追われ、処理が進まない
cause-memory-thrash-advice = CPU を増やしても、ディスクを速くしても効果はありません。同時に使うメモリーを減らす必要があります。
cause-out-of-memory = メモリー枯渇: カーネルがプロセスを強制終了した
cause-out-of-memory-advice = ワーカー数の上限を下げるか、サーバのメモリーを増やしてください。
cause-worker-limit-too-high = ワーカー数の上限がメモリーに対して大きすぎる
cause-worker-limit-too-high-advice = 同時に受け付けるリクエストは、メモリーに収まる数までにしてください。あふれた分は accept 待ちに並ぶだけで、負担になりません。
cause-accept-queue-overflow = accept 待ちがあふれ、接続が受け付けられなかった
cause-accept-queue-overflow-advice = クライアントからは 1 秒、3 秒、7 秒の遅延に見えます。ListenBacklog（と net.core.somaxconn）を増やすか、応答を速くしてください。
cause-disk-bound = ディスク律速: スワップではなく、ディスク I/O を待っていた
cause-lock-serialised = ロックによる直列化: 同時に処理されるのはほぼ 1 リクエストだけ
cause-worker-limit-too-low = ワーカー数の上限が小さすぎる: CPU とメモリーに余裕があるのにリクエストが待たされている
cause-worker-limit-too-low-advice = メモリーが許す範囲で、ワーカー数の上限を増やしてください。
cause-worker-limit-reached = ワーカー数の上限に達している
cause-worker-limit-right = ワーカー数の上限に達しており、その値は適切: これ以上増やしても効果はない
cause-failures-dominate = 失敗が多すぎて、スループットの値に意味がない
cause-offered-concurrency = かけた負荷の並列度: クライアントがそれ以上同時に要求していない
cause-cpu-bound = CPU 律速: サーバが使える CPU を使い切っている
cause-generator-saturated = 負荷生成側が先に限界に達した
cause-generator-saturated-advice = 負荷生成側のスレッドか CPU を増やしてください。この結果からサーバの限界は分かりません。
cause-one-core-busy = CPU 1 個分だけを使っている
cause-monitor-unfit = 計測値が少ない、または遅れているため判断できない
cause-unexplained = どの規則でも説明できない
cause-not-measured = 測定できていない

# ---- 原因ではなかったものと、その理由 ----
not-cpu-reclaim = CPU 不足ではありません。CPU 時間はアプリケーションではなく、空きメモリーを探すカーネルに費やされています。
not-cpu-waiting = CPU 不足ではありません。idle が 0 でも、CPU 使用率は user と system を足した値であり、残りは待ち時間です。
not-cpu-load-average = idle が 0 でロードアベレージが高くても、CPU 不足ではありません。どちらにも、メモリーやディスクを待っているだけのタスクが含まれています。
not-disk-swap = ディスクの遅さが原因ではありません。ディスクはスワップの読み書きに追われており、速いディスクに替えてもスラッシングが速くなるだけです。
not-disk-iowait = ディスクが遅いとは言えません。iowait は、ディスクを待つ間 CPU に他の仕事がなかったことを示すだけです。
not-memory-swap-resident = メモリー不足ではありません。スワップは使われていますが、読み戻しは起きていません。

# ---- 数値の名前 ----
number-readings = 計測回数
number-observed = 観測時間
number-connections = 指定した並列度
number-concurrency = 処理待ちを含む同時リクエスト数
number-goodput = 1 秒あたりの正常な応答
number-failures = 失敗
number-failed-share = 失敗の割合
number-host-cpu-user = CPU user
number-host-cpu-system = CPU system
number-host-cpu-idle = CPU idle
number-host-cpu-iowait = CPU iowait
number-host-cpu-steal = CPU steal
number-host-cpu-busy = CPU 使用率 (user + system)
number-cpu-used = サーバが使える CPU の使用率
number-host-cpus = ホストの CPU 数
number-server-cpus = サーバが使える CPU 数
number-server-cores = サーバが使った CPU 数
number-other-cores = 他のプロセスが使った CPU 数
number-load-average = ロードアベレージ
number-runnable = 実行可能なタスク数
number-group-memory-some = グループのメモリー待ち (some)
number-group-memory-full = グループのメモリー待ち (full)
number-host-memory-some = ホストのメモリー待ち (some)
number-host-memory-full = ホストのメモリー待ち (full)
number-group-io-some = グループの I/O 待ち (some)
number-group-io-full = グループの I/O 待ち (full)
number-host-io-some = ホストの I/O 待ち (some)
number-host-io-full = ホストの I/O 待ち (full)
number-group-refault-per-request = 1 応答あたりのスワップからの読み戻し
number-group-major-faults = グループの毎秒メジャーフォールト
number-host-major-faults = ホストの毎秒メジャーフォールト
number-group-swap-peak = グループの最大スワップ使用量
number-host-swap-peak = ホストの最大スワップ使用量
number-host-swap-in = 毎秒スワップイン
number-host-swap-out = 毎秒スワップアウト
number-group-memory-limit = グループのメモリー上限
number-host-memory = ホストのメモリー
number-memory-base = 負荷前のメモリー使用量
number-worker-cost = 1 リクエストあたりのメモリー
number-workers-that-fit = メモリーに収まるワーカー数
number-group-limit-hits = メモリー上限への到達回数
number-oom-kills = 強制終了されたプロセス数
number-host-disk-bytes = 毎秒ディスク転送量
number-host-disk-busy = ディスク使用率
number-host-disk-queue = ディスク待ち行列
number-swap-share-of-disk = ディスク転送に占めるスワップ
number-worker-limit = ワーカー数の上限
number-workers = 最大ワーカー数
number-busy-workers = 処理中のワーカー数
number-accept-queue = accept 待ち
number-accept-queue-most = 最長の accept 待ち
number-accept-queue-limit = accept 待ちの上限
number-host-listen-overflows = 受け付けられなかった接続
number-lock-waiters = ロック待ちのプロセス数
number-generator-share = 負荷生成側の CPU 使用率
number-late-share = 遅れた計測の割合
number-late-most = 計測の最大の遅れ
number-monitor-faults = 計測プロセス自身のメジャーフォールト
