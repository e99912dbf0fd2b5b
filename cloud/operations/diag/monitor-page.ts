import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; --good: light-dark(#1c6b50, #5cc8a2); --warn: light-dark(#8f4e00, #f0a848); --bad: light-dark(#b01818, #ff8a80); }
* { box-sizing: border-box; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 0; display: flex; flex-direction: column; height: 100dvh; }
header { display: flex; gap: .5rem .8rem; align-items: center; padding: .5rem .8rem; border-bottom: 1px solid #8888; flex-wrap: wrap; }
h1 { font-size: 1rem; margin: 0; }
form, label { display: flex; gap: .4rem; align-items: center; }
header, form { min-width: 0; }
input, select, button { font: inherit; min-height: 2.2rem; padding: .2rem .5rem; min-width: 0; }
input { width: 12rem; }
select { max-width: 14rem; }
#state { margin-right: auto; }
#lines { flex: 1; overflow: auto; margin: 0; padding: .4rem .8rem; font: 12px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.warn { color: var(--warn); } .error { color: var(--bad); }
#state[data-state="live"] { color: var(--good); } #state[data-state="lost"] { color: var(--bad); }
@media (max-width: 600px) {
  form, label { flex: 1 1 100%; }
  form label { flex: 1; }
  label > :is(input, select) { flex: 1; width: auto; max-width: none; }
}
`

/** An event source cannot send a credential in a header, so the stream is read by hand. */
const script = `
const byId = (id) => document.getElementById(id)
const lines = byId('lines'), state = byId('state'), file = byId('file'), filter = byId('filter'), key = byId('key')
const KEEP = 2000
let reading = null
const base = location.pathname.replace(/\\/monitor\\/?$/, '')
const headers = () => ({ 'X-API-Key': key.value.trim() })
const say = (name, text) => { state.dataset.state = name; state.textContent = text }
const refusals = { 401: 'this key is refused', 403: 'this key has no scope diag:read' }
const levels = { 40: 'warn', 50: 'error', 60: 'error' }
const shows = (row) => row.textContent.toLowerCase().includes(filter.value.toLowerCase())

function show(line) {
  const row = document.createElement('div')
  row.textContent = line
  try {
    const entry = JSON.parse(line)
    const { time, level, msg, ...rest } = entry
    row.className = levels[level] || ''
    row.textContent = new Date(time).toISOString() + '  ' + msg + '  ' + JSON.stringify(rest)
  } catch {}
  row.hidden = !shows(row)
  const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40
  lines.append(row)
  while (lines.childElementCount > KEEP) lines.firstElementChild.remove()
  if (atEnd) lines.scrollTop = lines.scrollHeight
}

async function follow() {
  if (reading) reading.abort()
  const mine = (reading = new AbortController())
  const options = { headers: headers(), signal: mine.signal }
  const query = file.value ? '?file=' + encodeURIComponent(file.value) : ''
  lines.replaceChildren()
  while (!mine.signal.aborted) {
    try {
      const past = await fetch(base + '/view' + (query ? query + '&' : '?') + 'lines=200', options)
      if (past.status in refusals) return say('lost', refusals[past.status])
      if (past.ok) { lines.replaceChildren(); for (const line of (await past.json()).lines) show(line) }
      const answer = await fetch(base + '/stream' + query, options)
      if (!answer.ok) throw new Error(answer.status)
      say('live', 'live')
      let rest = ''
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        const events = (rest + value).split('\\n\\n')
        rest = events.pop()
        for (const event of events) if (event.startsWith('data: ')) show(event.slice(6))
      }
    } catch {}
    if (mine.signal.aborted) return
    say('lost', 'connection lost, trying again')
    await new Promise((resolve) => AbortSignal.timeout(2000).addEventListener('abort', resolve))
  }
}

async function start(submit) {
  submit.preventDefault()
  const answer = await fetch(base + '/list', { headers: headers() }).catch(() => null)
  if (answer?.ok) {
    const names = (await answer.json()).filter((entry) => !entry.is_dir).map((entry) => entry.path)
    file.disabled = false
    file.replaceChildren(new Option('newest', ''), ...names.map((name) => new Option(name, name)))
  }
  follow()
}
file.addEventListener('change', follow)
byId('who').addEventListener('submit', start)
filter.addEventListener('input', () => { for (const row of lines.children) row.hidden = !shows(row) })
`

const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page needs nothing but itself and this service. */
export const monitorPolicy = [
  "default-src 'none'",
  `script-src ${hashSource(script)}`,
  `style-src ${hashSource(style)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Follows a log file with the key that is typed in, which stays in the page. */
export const monitorPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Larder: logs</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body>
<header>
<h1>Larder: logs</h1>
<span id="state" role="status">a key with the scope diag:read is needed</span>
<form id="who"><label>API key <input id="key" type="password" autocomplete="off" required autofocus></label><button>Follow</button></form>
<label>File <select id="file" disabled></select></label>
<label>Filter <input id="filter" type="search" autocomplete="off"></label>
</header>
<div id="lines" role="log" aria-label="Lines of the log" tabindex="0"></div>
<script>${script}</script>
</body>
</html>
`
