# レポートの読者が目にするすべての文（日本語）。id は en.ftl と同じ。
# 個数は数値のまま、その他の数値は文字列に整形済みで渡される。

# ---- 表 ----
row-time = 時間（秒）
row-rate = r/s
row-min = 最小（{ $unit }）
row-mean = 平均（{ $unit }）
row-median = 中央値（{ $unit }）
row-p99 = p99（{ $unit }）
row-max = 最大（{ $unit }）
row-connect = 接続（{ $unit }）
row-first-byte = 最初のバイト（{ $unit }）
row-last-byte = 最後のバイト（{ $unit }）
row-failed = 失敗
row-in-flight = 終了時に応答待ち
row-retries = 再送
row-trials = 試行
row-ratio = r/s の比
row-interval = { $confidence } % 信頼区間
row-verdict = 判定
role-baseline = 基準
role-again = A/A
table-note = 時間は試行の中央値、r/s は試行の幾何平均、応答時間と件数は全試行の合算です。p99 は 100 応答以上の場合だけ示します。
unanswered-note = 応答のないリクエストは下限しか分からないため、それによって定まらない応答時間は表に示しません。
in-flight-note = 終了時に応答待ち: 負荷の終了時に、まだ応答が終わっていなかったリクエスト。応答にも失敗にも数えません。
retries-note = 再送: KeepAlive の接続が応答なしに終わったため、新しい接続で送り直したリクエスト。使われていない接続では普通に起こるので、失敗には数えません。
phases-note = 全試行の中央値。接続は開いたすべての接続にかかった時間、バイトはリクエスト開始から正常な応答の最初と最後のバイトまでの時間です。

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
verdict-inconclusive-many = 判定不能（あと { $blocks } ブロックを超える測定が必要）
compared = 1 秒あたりのリクエスト数は基準の { $ratio } 倍（{ $confidence } % 信頼区間 { $low }〜{ $high }、{ $blocks } ブロック）
compared-once = 1 秒あたりのリクエスト数は基準の { $ratio } 倍（1 ブロックのみのため信頼区間なし）
compared-unanswered = 基準が応答した { $blocks } ブロックのすべてで正常な応答がまったくなく、1 秒あたりのリクエスト数は基準の { $ratio } 倍
compared-and-judged = { $compared }。判定: { $judgement }。
noise-floor = A/A: 同じ設定のまま基準をもう一度測ると { $ratio } 倍（{ $low }〜{ $high }）でした。何も変えていないので、この測定では { $floor } 倍までの差をノイズと区別できません。
judged-together = { $n } 個の区間は、全部まとめて { $confidence } % の信頼度で成り立ちます。そのため一つだけのときより広く、差はHolmの方法で判定しています。
judged-looks = 全部決着したところで終わる測定で、途中で { $looks } 回まで判定できます。区間と判定は、全回を通して { $confidence } % の信頼度で成り立ちます。
judged-decided = { $blocks } ブロックで全部決着しました。
judged-early = { $blocks } ブロックで時間がなくなり、まだ決着していない比較があります。
judged-undecided = 上限の { $blocks } ブロックでも、まだ決着していない比較があります。

# ---- 注意 ----
warn-incomplete = この測定は最後まで終わっていません（{ $planned } 試行のうち { $made } 試行のみ）。
warn-no-baseline = 基準「{ $cell }」には正常な応答のあった有効な試行がないため、比較できません。
warn-not-compared = 「{ $cell }」は比較できませんでした: { $why }。
warn-unanswered = { $of } ブロック中 { $blocks } ブロックで、比べる 2 つのセルの一方に正常な応答がまったくありませんでした。比は残りのブロックだけのもので、結論は出せません。
warn-invalid = { $made } 試行のうち { $n } 試行は無効で、集計に含めていません。
warn-ended-early = { $made } 試行のうち { $n } 試行は保護機能により途中で打ち切られました。打ち切りまでの測定値は集計に含めています。
warn-one-block = 比較できたのは 1 ブロックだけのため、信頼区間は求められません。
warn-one-block-of = { $cells }で比較できたのは 1 ブロックだけのため、信頼区間は求められません。
warn-few-blocks = 比較できたのは { $blocks } ブロックだけのため、信頼区間はノイズが正規分布に従うという仮定に頼っています。
warn-few-blocks-of = { $cells }で比較できたのは { $blocks } ブロックだけのため、その信頼区間はノイズが正規分布に従うという仮定に頼っています。
warn-zero-variance = どのブロックでも比がまったく同じで、ばらつきを見積もれません。
warn-below-margin = 差はありますが、計画で指定した許容差を下回ります。
warn-ranks-disagree = 符号付き順位検定の結果（p = { $p }）と食い違っています。1 つのブロックだけで信頼区間が決まっている可能性があります。
warn-within-noise = この測定では { $floor } 倍までの差をノイズと区別できないため、判定を取り下げました。
warn-noise-unknown = A/A セルと基準の両方を測定できたブロックの数は { $blocks } です。ノイズの大きさを見積もるには足りないため、この差はノイズと比べられていません。
warn-again-differs = 何も変えていない A/A セルが基準の { $ratio } 倍になりました。測定中に何かが変動しています。小さな差は信用しないでください。
warn-generator-share = 負荷生成側がサーバーと同じ CPU を使い、マシン全体の最大 { $share } % を消費しました。

# ---- 負荷のかけ方への疑問 ----
doubt-little = { $trials ->
        [0] この負荷で
       *[other] { $trials } 試行中 { $n } 試行で
    }リトルの法則に合いません。実際の並列度は平均 { $achieved } ですが、スループットと正常な応答の応答時間の積は { $computed } です。集計されないリクエストに時間が使われた可能性があります。
doubt-concurrency = { $trials ->
        [0] この負荷で
       *[other] { $trials } 試行中 { $n } 試行で
    }、実際の並列度が { $achieved } にとどまり、指定した { $asked } に届きませんでした。
doubt-generator = { $trials ->
        [0] この負荷で
       *[other] { $trials } 試行中 { $n } 試行で
    }、負荷生成側が自分の限界に達しました（CPU 時間の { $share } %）。サーバーにはまだ余力があるかもしれません。
doubt-few-waves = { $trials ->
        [0] この負荷で
       *[other] { $trials } 試行中 { $n } 試行で
    }、接続あたりのリクエスト数が { $waves } と少なく、開始直後と終了間際の影響が大きくなっています。
doubt-rate = { $trials ->
        [0] この負荷で
       *[other] { $trials } 試行中 { $n } 試行で
    }、指定したレートに届きませんでした。毎秒 { $asked } 件のはずが、送信できたのは { $achieved } 件です。空いている接続が足りなかったか、負荷生成側が追いつきませんでした。
doubt-late = { $trials ->
        [0] この負荷で
       *[other] { $trials } 試行中 { $n } 試行で
    }、負荷生成側自身に遅れがありました。接続が空いていたのに、リクエストの { $others } % 超が予定から 1 ms を過ぎて始まっています（{ $percentile } { $late }）。応答時間にはこの遅れも含まれます。
doubt-in-flight = 負荷の終了時にまだ応答待ちのリクエストが多くありました（正常な応答 { $good } 件に対して { $n } 件）。より長い負荷で測ってください。
doubt-late-answers = 正常な応答 { $good } 件のうち { $n } 件は終了後に届きました。レートには含みません。サーバーが追いつかずリクエストがたまったか、この応答時間に対して負荷が短すぎました。
doubt-retries = KeepAlive の接続が応答なしに終わり、送り直したリクエストが多くありました（正常な応答 { $good } 件に対して { $n } 件、例: { $example }）。リクエストを処理するとサーバーが落ちる場合に起こります。

# ---- 失敗 ----
failure-refused = 接続拒否
failure-reset = 接続リセット
failure-timeout = タイムアウト
failure-closed-early = 応答の途中で切断
failure-bad-response = HTTP として読めない応答
failure-length-differs = 本文の長さの不一致
failure-status = 2xx 以外のステータス（{ $statuses }）
failure-proxy = プロキシがトンネルを拒否
failure-tls = TLS が失敗
failure-check = 応答の検査に不合格
failure-local = このマシンから送信できず
with-detail = { $text }（{ $detail }）

# ---- 測定と試行 ----
end-complete = 完了
end-unfinished = 未完了
end-interrupted = 中断
end-failed = 失敗: { $why }
outcome-complete = 完了
outcome-invalid = 無効: { $why }
stop-thrash = 途中で打ち切り: サーバーのスラッシングが計画の上限を超えて続きました
stop-failures = 途中で打ち切り: 失敗したリクエストが多すぎました
stop-host-swap-in = 途中で打ち切り: ホスト自体でスワップインが始まりました
stop-host-memory = 途中で打ち切り: ホスト自体のメモリーが残り少なくなりました
stop-time-limit = 途中で打ち切り: 1 試行の制限時間に達しました
stop-unwatched = 途中で打ち切り: 計測プロセスの応答が途絶え、ホストを監視できなくなりました
stop-interrupted = 中断のため集計外
trial-of = ブロック { $block }、{ $cell }
note-in-trials = 全 { $trials } 試行中 { $n } 試行: { $note }
note-sampler = 計測プロセスからの報告: { $note }
note-killable = OOM killer からの保護が拒否されたため、メモリーが枯渇すると計測プロセスも強制終了されるおそれがあります
note-not-locked = メモリーのロックが拒否されたため、メモリー不足のときに計測が遅れるおそれがあります
note-no-priority = リアルタイム優先度が拒否されたため、すべての CPU が使われているときに計測が遅れるおそれがあります
block-n = ブロック { $block }
placement-shared = サーバーと負荷生成側は CPU を共有
placement-split = サーバーは CPU { $server }、負荷生成側は CPU { $load }
confined = サーバーのメモリーを { $memory } に制限（スワップなし）
confined-swap = サーバーのメモリーを { $memory } に制限（スワップあり）
amount-requests = { $requests } リクエスト
amount-duration = { $duration }
amount-either = { $requests } リクエストまたは { $duration }（先に終わる方）
amount-open = 停止するまで
load-keep-alive = { $request }、{ $pace }、{ $amount }、KeepAlive あり
load-close = { $request }、{ $pace }、{ $amount }、KeepAlive なし
request-http10 = HTTP/1.0 で { $request }
request-with-body = { $request }（本文 { $bytes }）
request-logged = { $file } の { $methods }
request-of-mix = { $request } { $share } %
request-page = { $request } とページに属する { $parts } 件
request-mix = { $kinds } 種類のリクエスト（{ $list }）
pace-closed = 並列度 { $connections }
pace-open = { $arrivals }、最大 { $connections } 接続
pace-pipelined = { $pace }、それぞれ { $depth } 件までパイプライン
rate-constant = 毎秒 { $rate } 件
rate-held = { $duration } の間毎秒 { $rate } 件
rate-ramp = { $duration } かけて毎秒 { $from } 件から { $to } 件へ
arrivals-even = { $rate }を等間隔で
arrivals-poisson = { $rate }をランダムな間隔（ポアソン）で
arrivals-bursts = { $rate }を { $size } 件ずつまとめて
pace-users = それぞれ { $connections } 接続の利用者（同時に最大 { $users } 人）: { $pace }
arrivals-logged = { $requests } 件を記録どおりに、{ $speed } 倍の速さで
host-line = { $name }: CPU { $cpus } 個、メモリー { $memory }、スワップ { $swap }、Linux { $kernel }
made-line = { $began }、webdyno { $version }、{ $blocks } ブロック、シード { $seed }: { $end }

# ---- 単独の負荷 ----
section-thresholds = 満たすべき条件
section-times = 所要時間
section-histogram = リクエストの応答時間
section-over-time = 時間変化
section-search = 保てる最大のレート
section-steps = 試したレート
search-found = 毎秒 { $rate } 件は 2 回とも条件を満たしました（{ $goals }、予定の 99 % が正常に応答、未送信なし）。
search-missed = 毎秒 { $rate } 件は満たしませんでした。
search-at-least = 少なくとも毎秒 { $rate } 件。2 回とも条件を満たしました（{ $goals }）。
search-generator = 毎秒 { $rate } 件では、サーバーではなく負荷生成側が限界でした。余裕のあるマシンから送ってください。
search-nothing = どのレートも条件を満たしませんでした。この長さで { $goals } を判定できる最低のレートは毎秒 { $rate } 件で、それも満たしませんでした。
search-open = 結論が出る前に探索が終わりました。満たした最大のレート: { $held }、満たさなかった最小のレート: { $missed }。
search-none = なし
search-behind = 予定の { $due } 件のうち正常な応答は { $good } 件でした（99 % が必要）
search-behind-late = 予定の { $due } 件のうち正常な応答は時間内に { $good } 件、終了後に { $late } 件でした。終了後の応答が通常の処理中の件数を超えています（時間内に 99 % が必要）
search-unsent = 空いた接続がなく { $n } 件を送れませんでした。接続を増やせば送れる可能性があります
search-stopped = 安全装置が途中で止めました
search-late = 負荷生成側が遅れました。{ $others } % のリクエストの開始が { $late } より遅れました
search-saturated = 負荷生成側が使える CPU 時間をほぼ使い切りました
search-steps = 試した回数: { $n }。どの回も標本にすぎません。限界に近いレートは満たすときも満たさないときもあります。
search-contradiction = 偶然かサーバーの変化が影響しています。{ $rates } は満たした回と満たさなかった回があるか、それより高いレートが満たした回があります。それ以下のレートが一度も外れなかったレートだけを結論とします。
search-rate = 予定（毎秒）
search-good = 正常な応答（毎秒）
search-outcome = 結果
search-held = 満たす
search-not-held = 満たさず
search-not-held-generator = 生成側
search-closed = 最初に各接続が応答を受けるたびに送り、毎秒 { $rate } 件の正常な応答を得ました。
section-probe = 通りがかりの訪問者から見た応答
section-ab-time = ab の 2 行の「Time per request」
ab-time-per-request = 1 行目（{ $each }）は { $connections } 接続 x { $seconds } / { $requests } リクエストで、全接続が常に使われていたとした場合の 1 リクエストあたりの平均時間です。2 行目（{ $across }）は接続数を掛けない値で、毎秒のリクエスト数の逆数です。どちらも測定した値ではありません。
ab-time-measured = 測定した平均応答時間（正常な応答）: { $mean }
probe-visits = 訪問は { $n } 回。負荷とは別に、毎回新しい接続で送りました。応答 { $good } 回、失敗 { $failed } 回。上の数値には含まれません。
probe-unanswered = 負荷の終了時に応答がなかった訪問は { $n } 回です。
probe-few = n = { $n }。この回数で分かるパーセンタイルは { $percentile } までです。
probe-too-few = n = { $n }。この回数ではパーセンタイルは分かりません。
probe-connects = 訪問者の応答時間には接続の時間（TLS ならその時間も）を含みます。接続を保つ負荷の応答時間には含まれません。
probe-visitor = 訪問者（{ $unit }）
probe-load = 負荷（{ $unit }）
section-limit = 何が限界だったか
threshold-met = 達成: { $threshold }（実測 { $found }）
threshold-missed = 未達: { $threshold }（実測 { $found }）
threshold-cut-off = 不明のため未達: { $threshold }（応答のないリクエストが残っており、{ $found }としか言えません）
threshold-too-few = 不明のため未達: { $threshold }（必要な件数 { $needed }、実際の件数 { $have }、その中での値 { $found }）
threshold-nothing = 不明のため未達: { $threshold }（測定された値がありません）
threshold-closed = 不明のため未達: { $threshold }（レートを指定した負荷にしかない値です。-r 100/s のように指定してください）
threshold-users = 不明のため未達: { $threshold }（利用者の負荷では、レートに従って来るのは利用者であり、リクエストではないため、この値はありません。page か応答時間で判定してください）
threshold-no-users = 不明のため未達: { $threshold }（ページ全体を待つのは利用者の負荷だけです。--page を付けてください）
more-than = { $value } 超
fact-users = 利用者
fact-users-text = 来訪 { $users } 人、接続不足で入れず { $away } 人；完全なページ { $pages }、不完全 { $incomplete }；再訪 { $returned } 回
fact-impatience = 待ちきれず
fact-impatience-text = 離脱 { $gave_up } 人、再読み込み { $reloads } 回；途中で捨てられたリクエスト { $abandoned } 件
fact-good = 正常な応答
fact-good-text = 毎秒 { $rate } 件（{ $window } で { $good } 件）
fact-late = 終了後
fact-late-text = 正常な応答がさらに { $n } 件届きました（応答時間には含み、レートには含みません）
fact-due = 送信予定
fact-due-text = 毎秒 { $asked } 件（計 { $arrived } 件）、実際の送信は毎秒 { $sent } 件
fact-failed = 失敗
fact-failed-none = なし
fact-failed-text = { $failed } 件（終わったリクエストの { $share }）
fact-statuses = ステータス
fact-unsent = 未送信
fact-unsent-text = { $unsent } 件（送信予定の { $share }）: 終了まで空いた接続がありませんでした
fact-in-flight = 終了時に応答待ち
fact-in-flight-text = { $n } 件（応答にも失敗にも数えません）
fact-retries = 再送
fact-retries-text = { $n } 件（KeepAlive の接続が応答なしに終わったもの。使われていない接続では普通に起こります）
fact-concurrency = 並列度
fact-concurrency-open = 平均 { $achieved } 件が応答待ち
fact-concurrency-closed = 平均 { $achieved } 件が応答待ち（指定は { $asked }）
fact-bytes = 受信
fact-bytes-text = 毎秒 { $rate }（計 { $received }）、送信は計 { $sent }
fact-connections = 接続
fact-connections-text = { $opened } 回
fact-generator = 負荷生成側
fact-generator-text = { $threads } スレッドの CPU 時間の { $share }
fact-generator-late = { $threads } スレッドの CPU 時間の { $share }、リクエストの { $percent } % は送信可能になってから { $late } 以内に開始
part-latency = 応答時間（{ $unit }）
part-service = 処理時間（{ $unit }）
part-first-byte = 最初のバイト（{ $unit }）
part-connect = 接続（{ $unit }）
part-handshake = TLS（{ $unit }）
part-page = ページ全体（{ $unit }）
statistic-min = 最小
statistic-mean = 平均
statistic-max = 最大
latency-of-users = 応答時間はリクエストの送信から、ページ全体はクリック（または利用者が来ようとした時点）からページに属するものすべての最後のバイトまでの時間です。利用者があきらめたページ、タイムアウトしたページ、終了時に届いていなかったページは、待った時間を下限として含みます。
latency-of-open = 応答時間は送信予定の時刻から、処理時間は実際の送信から数えます。その差は接続が空くまで待った時間です。利用者も同じだけ待たされますが、応答を待って次を送る負荷では現れません。
latency-of-closed = 応答時間は送信から数えます。サーバーが遅い間は送信も減るため、互いを待たない利用者の応答時間はこれより長くなります。それを測れるのはレートを指定した負荷だけです。
latency-more-than = 応答時間には応答のなかったリクエスト { $n } 件を含みます。これらは下限しか分かりません。「>」はその値を超えることを示します。
latency-too-few = リクエストが足りないため { $percentile } は分かりません。少なくとも { $needed } 件必要です。
bar-unanswered = 応答なし
spark-good = 1 秒あたりの正常な応答（{ $least }〜{ $most }）、1 文字は { $seconds } 秒
spark-failed = 1 秒あたりの失敗（{ $least }〜{ $most }）、1 文字は { $seconds } 秒
load-interrupted = 中断されました。それまでの測定値を示します
load-nothing-measured = 何も測定しないうちに終わりました。
load-made-line = { $began }、webdyno { $version }、シード { $seed }: { $end }

# ---- 測定中の画面 ----
screen-beginning = 準備中
screen-preflight = 最初のリクエストを 1 件ずつ送信中
screen-warm-up = ウォームアップ中（集計外）
screen-measuring = 測定中
screen-searching = 探索中（{ $number } 回目）
screen-closed-first = 最初に応答待ちの負荷で測定中
screen-ending = 終了処理中（測定値は残ります）
screen-clock = { $elapsed }
screen-clock-left = { $elapsed } / { $whole }、残り { $left }
screen-clock-requests = { $elapsed }、応答 { $ended } / { $requests }
screen-keys = q で終了（測定値は残ります）
screen-keys-again = もう一度 q ですぐに終了
screen-rate = 1 秒あたりの正常な応答
screen-rates = 現在 { $now }、平均 { $mean }
screen-rates-asked = 現在 { $now }、予定 { $asked }、平均 { $mean }
screen-counts = 正常 { $good }、失敗 { $failed }
screen-waiting = 応答待ち { $n }
screen-failures = 失敗
screen-latency-sent = 送信からの応答時間（{ $unit }）
screen-latency-due = 送信予定からの応答時間（{ $unit }）
screen-so-far = 全体
screen-last-second = 直前の 1 秒
screen-step = 予定 { $asked }/s、正常 { $good }/s: { $outcome }
screen-visits = 訪問 { $n } 回、失敗 { $failed }、応答待ち { $waiting }
screen-visit-times = 中央値 { $median }、最長 { $most }
screen-notes = 備考
screen-machine = このマシン
screen-generator = webdyno
screen-generator-text = CPU 1 個の { $share } %
screen-cpu = CPU
screen-cpu-text = 使用 { $busy }、iowait { $iowait }、steal { $steal } %
screen-memory = メモリー
screen-memory-text = 空き { $available } / { $total }
screen-swap = スワップ
screen-swap-none = なし
screen-swap-text = { $used }、in { $in }、out { $out } { $unit }
screen-tasks = タスク
screen-tasks-text = 実行可能 { $runnable }、待機 { $blocked }
screen-pressure = PSI
screen-pressure-text = CPU { $cpu }、メモリー { $memory }、I/O { $io } %

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
label-server = サーバー
label-host = ホスト
label-seed = シード
label-version = webdyno
label-placement = 配置
label-plan = 計画（パラメーター展開後）
label-notes = 備考
label-log = サーバーのエラーログの末尾
label-ruled-out = 原因ではなかったもの
label-seconds = 負荷開始からの秒数
label-percentile = 応答の割合（%）
label-as-table = 表で見る
label-typical = セルの中央値にあたる試行
leads-to = その結果: { $effect }
told-as-effect = その結果: { $finding }
told-as-cause = その原因: { $finding }
in-some-trials = { $limit }（{ $trials } 試行中 { $n } 試行）
no-diagnosis = 有効な試行がないため、判断できません
list-separator = 、
quoted = 「{ $text }」
forest-caption = 1 秒あたりのリクエスト数を基準に対する倍率で示したもの（対数目盛）。
legend-ratio = 比
legend-interval = { $confidence } % 信頼区間
legend-margin = 同等とみなす範囲（計画で指定した許容差 ±{ $margin } %）
latency-caption = 応答のうちその割合までが収まる応答時間（セルの全試行を合算）。両軸とも対数目盛。低いほどよい。
trials-caption = 指標の種類ごとのグラフを同じ時間軸（負荷開始からの秒数、単位 s）に並べたもの。各セルの中央値にあたる試行を開いてある。

# ---- 時間変化 ----
panel-requests = 1 秒あたりのリクエスト数
panel-cpu = ホストの CPU 使用率
panel-memory = メモリー
panel-pressure = 待ち時間の割合（PSI）
panel-workers = ワーカー
series-good = 正常な応答
series-failed = 失敗
series-cpu-busy = user + system
series-cpu-iowait = iowait
series-cpu-group = サーバーのグループ
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
cause-host-disturbed = 外乱: サーバー以外が原因でホスト自体がスワップしており、この試行からサーバーについては何も言えない
cause-host-disturbed-advice = ホスト上でメモリーを使っている他のプロセスを止めるか、ホスト側に残すメモリーを増やして、測り直してください。
cause-memory-thrash = スラッシング: メモリー不足でスワップに追われ、処理が進まない
cause-memory-thrash-advice = CPU を増やしても、ディスクを速くしても効果はありません。同時に使うメモリーを減らす必要があります。
cause-out-of-memory = メモリー枯渇: カーネルがプロセスを強制終了した
cause-out-of-memory-advice = ワーカー数の上限を下げるか、サーバーのメモリーを増やしてください。
cause-worker-limit-too-high = ワーカー数の上限がメモリーに対して大きすぎる
cause-worker-limit-too-high-advice = 同時に受け付けるリクエストは、メモリーに収まる数までにしてください。あふれた分は accept 待ちに並ぶだけで、負担になりません。
cause-file-cache-thrash = ページキャッシュのスラッシング: 使用中のファイルがメモリーに収まらず、何度も読み直している
cause-file-cache-thrash-advice = ワーカー数を減らすか、メモリーを増やしてください。ディスクを速くしても、効果はわずかです。
cause-accept-queue-overflow = accept 待ちがあふれ、接続が受け付けられなかった
cause-accept-queue-overflow-advice = クライアントからは 1 秒、3 秒、7 秒の遅延に見えます。ListenBacklog（と net.core.somaxconn）を増やすか、応答を速くしてください。
cause-disk-bound = ディスク律速: スワップではなく、ディスク I/O を待っていた
cause-lock-serialised = ロックによる直列化: 同時に処理されるのはほぼ 1 リクエストだけ
cause-worker-limit-too-low = ワーカー数の上限が小さすぎる: CPU とメモリーに余裕があるのにリクエストが待たされている
cause-worker-limit-too-low-advice = メモリーが許す範囲で、ワーカー数の上限を増やしてください。
cause-worker-limit-reached = ワーカー数の上限に達している
cause-worker-limit-right = ワーカー数の上限に達しており、その値は適切: これ以上増やしても効果はない
cause-failures-dominate = 失敗が多すぎて、スループットの値に意味がない
cause-offered-concurrency = 負荷の並列度が上限: クライアントがこれ以上同時に要求していない
cause-cpu-bound = CPU 律速: サーバーが使える CPU を使い切っている
cause-generator-saturated = 負荷生成側が先に限界に達した
cause-generator-saturated-advice = 負荷生成側のスレッドか CPU を増やしてください。この結果からサーバーの限界は分かりません。
cause-one-core-busy = CPU 1 個分だけを使っている
cause-monitor-unfit = 計測値が少ない、または間隔が空きすぎているため判断できない
cause-unexplained = どの規則でも説明できない
cause-not-measured = 測定できていない

# ---- 原因ではなかったものと、その理由 ----
not-cpu-reclaim = CPU 不足ではない。CPU 時間はアプリケーションではなく、空きメモリーを探すカーネルに費やされている。
not-cpu-waiting = CPU 不足ではない。idle が 0 でも、CPU 使用率は user と system を足した値であり、残りは待ち時間である。
not-cpu-load-average = idle が 0 でロードアベレージが高くても、CPU 不足ではない。どちらにも、メモリーやディスクを待っているだけのタスクが含まれる。
not-disk-swap = ディスクの遅さが原因ではない。ディスクはスワップの読み書きに追われており、速いディスクに替えてもスラッシングが速くなるだけである。
not-disk-iowait = ディスクが遅いとは言えない。iowait は、ディスクを待つ間 CPU に他の仕事がなかったことを示すだけである。
not-memory-swap-resident = メモリー不足ではない。スワップは使われているが、読み戻しは起きていない。

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
number-host-cpu-busy = CPU 使用率（user + system）
number-cpu-used = サーバーが使える CPU の使用率
number-cpu-pressure = グループの CPU 待ち（some）
number-host-cpus = ホストの CPU 数
number-server-cpus = サーバーが使える CPU 数
number-server-cores = サーバーが使った CPU 数
number-other-cores = 他のプロセスが使った CPU 数
number-load-average = ロードアベレージ
number-runnable = 実行可能なタスク数
number-group-memory-some = グループのメモリー待ち（some）
number-group-memory-full = グループのメモリー待ち（full）
number-host-memory-some = ホストのメモリー待ち（some）
number-host-memory-full = ホストのメモリー待ち（full）
number-group-io-some = グループの I/O 待ち（some）
number-group-io-full = グループの I/O 待ち（full）
number-host-io-some = ホストの I/O 待ち（some）
number-host-io-full = ホストの I/O 待ち（full）
number-group-refault-per-request = 1 応答あたりのスワップからの読み戻し
number-group-file-refaults = グループの毎秒ファイル再読み込み量
number-host-file-refaults = ホストの毎秒ファイル再読み込み量
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
number-unwatched = 計測が途切れていた時間の割合
number-longest-gap = 最長の計測間隔
number-monitor-faults = 計測プロセス自身のメジャーフォールト

# ---- 取り込んだ ab の出力 ----
section-origins = 出典
section-wrong = 成り立たない数値
section-doubtful = 知っておくべきこと
section-notes = ab の表記
import-about = 別の場所で測定され、取り込まれた ab のレポートが { $n } 件。webdyno が測定したものはありません。測定中にマシンで何が起きていたか、どの順で実行されたかは分かりません。
import-lost = 現在の規則では、ここにレポートはありません。
import-family-microseconds = ab 2.0.40〜Apache 2.2 の ab
import-family-milliseconds = ab 2.3（Apache 2.2 または初期の 2.4）
import-family-today = ab 2.3（Apache 2.4）
import-family-trunk = Apache の次版の ab
import-family-none = この形式で出力する ab はない
import-row-line = 行
import-row-requests = リクエスト数
import-row-connections = 並列度
import-note = r/s: 正常なリクエストの毎秒の数。完了した数から、失敗した数と 2xx 以外の数のうち多い方を引いて求めます。時間は ab の表示どおりです。
import-compared = { $other }: 正常なリクエストの毎秒の数は { $baseline } の { $ratio } 倍（{ $change } %）。
import-not-compared = { $other } と { $baseline } は比較できません。正常なリクエストが 1 件もない実行があります。
import-one-run-each = 1 回ずつの実行からは区間を出せません。同じ設定の 2 回の実行がどれほど違うか分からないためです。
import-one-run = 一方が 1 回だけの実行なので、区間を出せません。その設定の実行がどれほどばらつくか分からないためです。
import-no-spread = どちらの実行も最後の桁まで同じなので、区間を出せません。同じ実行の写しではありませんか。
import-interval = { $confidence } % 信頼区間 { $low }〜{ $high }（Welch の t、実行回数 { $baseline } と { $other }、p = { $p }）。
import-order = 実行の順は無作為ではありません。設定のほかに変わったことも、この差に含まれます。そのため判定はしません。
import-sample = 1 回の実行は、リクエストがいくつあっても 1 つの標本です。
import-other-load = 負荷の条件も違います: { $what }。
import-load-connections = 並列度 { $a } と { $b }
import-load-path = 対象 { $a } と { $b }
import-load-keep-alive = KeepAlive { $a } と { $b }
import-made-line = { $taken } に取り込み、webdyno { $version }
slip-skipped = レポートの中で ab のものではなく、読み飛ばした行: { $n }。
slip-fragment = レポートの始まりのようですが、必要な行がありません。
slip-unpadded-seconds = 「{ $written }」は { $seconds } 秒です。この ab はマイクロ秒の先頭の 0 を省いて表示しました。そう読むときだけ他の数値と合います。
slip-differs = 「{ $label } { $printed }」は { $formula } により { $expected } のはずです。
slip-differs-follows = 「{ $label } { $printed }」は { $formula } により { $expected } のはずです。この値は { $follows } のものです。
slip-whole-kilobytes = Transfer rate { $printed } は、正確には { $exact } です。この ab は 1024 での割り算を整数で行います。
slip-failures-in-rate = 「Requests per second: { $printed }」には失敗も含まれます。正常なのは { $complete } のうち多くても { $good } で、毎秒 { $rate } です。
slip-claim = 「{ $written } %」とありますが、それまでの数値にこの差はありません。最も近いのは { $base } 行目と { $line } 行目の差で { $nearest } % です。
slip-table-differs = 1 つの表に毎秒 { $rate } と { $time } ms とがありますが、{ $time } ms は毎秒 { $gives } に当たり、この文書のどの並列度でも一致しません。
slip-failure-sum = Failed requests は { $failed } ですが、原因別の合計は { $causes } です。
slip-missing = どの ab も省かない行がありません: { $labels }。行が削られたか、ab の出力ではありません。
slip-keep-alive-unused = KeepAlive を指定（-k）しましたが、{ $complete } のうち接続を維持して処理されたものはありません。
slip-body-bytes-in-flight = 本文のバイト数は { $answers } 回分の応答に当たりますが、完了したのは { $complete } です。ab の終了時に受信中だった応答は、バイト数にだけ含まれます。
slip-body-bytes = 本文のバイト数は { $answers } 回分の応答に当たりますが、完了したのは { $complete } で、失敗はありません。
slip-bodies-exceed-total = 本文のバイト数 { $html } が、全体のバイト数 { $total } を超えています。
slip-capped = -t を指定した ab は 50000 リクエストで終わります。このテストはそこで終わっており、指定した時間よりずっと早かった可能性があります。
slip-one-wave = 並列度がリクエスト数（{ $complete }）以上なので、全体が 1 つの波です。パーセンタイルは処理された順を示すだけで、定常状態の値ではありません。
slip-few-waves = 1 接続あたりのリクエスト数: { $waves }。開始と終了の影響が大きくなります。
slip-header-bytes-in-flight = 同じ対象への実行で、完了した応答あたりのヘッダーのバイト数が違います: { $list }。ab の終了時に受信中だった応答で説明できます。
slip-header-bytes = 同じ対象への実行で、完了した応答あたりのヘッダーのバイト数が違います: { $list }。サーバーの応答が同じではありません。
slip-little = 毎秒の数と平均時間の積から、処理中は平均 { $in_flight } でした。指定は { $asked } です。
slip-row-order = 「{ $row }」の時間の大小が逆です。
slip-parts-differ = 接続と処理の平均の和は { $parts } ms ですが、合計の平均は { $total } ms です。
slip-percentile-falls = { $percent } % の値が、それより低いパーセントの値を下回っています。
slip-percentile-differs = { $percent } %: パーセンタイルの表では { $listed } ms、時間の表では { $table } ms です。
slip-percentile-odd = { $percent } %: パーセンタイルの表では { $listed } ms、時間の表では { $table } ms です。リクエスト数が奇数のとき、ab の中央値は正しくありません。
slip-skewed = 最も長いリクエストは { $max } ms、中央値は { $median } ms、平均は { $mean } ms です。一部は接続のやり直しなど別のことを待っており、毎秒の数にもそれが含まれます。
slip-glued = 「{ $written }」は 100 % と { $value } ms と読みました。間の記号と空白が失われています。
