import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 0; display: flex; flex-direction: column; height: 100vh; }
header { display: flex; gap: .6rem; align-items: center; padding: .5rem .8rem; border-bottom: 1px solid #8884; flex-wrap: wrap; }
h1 { font-size: 1rem; margin: 0 auto 0 0; }
input, select, button { font: inherit; padding: .2rem .5rem; }
#lines { flex: 1; overflow: auto; margin: 0; padding: .4rem .8rem; font: 12px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.warn { color: #b60; } .error { color: #c22; }
#state[data-state="live"] { color: #2a7d5f; } #state[data-state="lost"] { color: #c22; }
`

/** An event source cannot send a credential in a header, so the stream is read by hand. */
const script = `
const byId = (id) => document.getElementById(id)
const lines = byId('lines'), state = byId('state'), file = byId('file'), filter = byId('filter'), key = byId('key')
const KEEP = 2000
let reading = null
const base = location.pathname.replace(/\\/monitor\\/?$/, '')
const headers = () => (key.value ? { 'X-API-Key': key.value } : {})
const say = (name, text) => { state.dataset.state = name; state.textContent = text }
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
      if (past.status === 401 || past.status === 403) return say('lost', 'a key with diag:read is needed')
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

async function start() {
  const answer = await fetch(base + '/list', { headers: headers() })
  if (answer.ok) {
    const names = (await answer.json()).filter((entry) => !entry.is_dir).map((entry) => entry.path)
    file.replaceChildren(new Option('newest', ''), ...names.map((name) => new Option(name, name)))
  }
  follow()
}
file.addEventListener('change', follow)
key.addEventListener('change', start)
filter.addEventListener('input', () => { for (const row of lines.children) row.hidden = !shows(row) })
start()
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

/** Follows a log file. The key that is typed in stays in the page. */
export const monitorPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Larder: logs</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body>
<header>
<h1>Larder: logs</h1>
<span id="state" role="status">connecting</span>
<label>File <select id="file"></select></label>
<label>Filter <input id="filter" type="search" autocomplete="off"></label>
<label>API key <input id="key" type="password" autocomplete="off"></label>
</header>
<div id="lines" role="log" tabindex="0"></div>
<script>${script}</script>
</body>
</html>
`
