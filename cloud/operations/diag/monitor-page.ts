import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; --good: light-dark(#1c6b50, #5cc8a2); --warn: light-dark(#8f4e00, #f0a848); --bad: light-dark(#b01818, #ff8a80); --quiet: light-dark(#555, #b5b5b5); }
* { box-sizing: border-box; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 0; display: flex; flex-direction: column; height: 100dvh; }
header { display: flex; gap: .5rem .8rem; align-items: center; padding: .5rem .8rem; border-bottom: 1px solid #8888; flex-wrap: wrap; min-width: 0; }
h1 { font-size: 1rem; margin: 0; }
form, label { display: flex; gap: .4rem; align-items: center; min-width: 0; }
input, select, button { font: inherit; min-height: 44px; padding: .2rem .6rem; min-width: 44px; }
input { width: 11rem; }
select { max-width: 12rem; }
button { min-width: 6rem; }
#state { margin-right: auto; }
main { flex: 1; min-height: 0; display: flex; }
#lines { flex: 1; overflow: auto; margin: 0; padding: .4rem .8rem; overflow-wrap: anywhere; }
#lines > div { padding: .15rem 0; border-bottom: 1px solid #8883; }
time { color: var(--quiet); font: 12px ui-monospace, monospace; margin-right: .5rem; }
details { display: inline; }
details[open] { display: block; }
summary { display: inline-flex; align-items: center; color: var(--quiet); cursor: pointer; padding: .3rem .5rem; min-height: 24px; }
pre { font: 12px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0 .4rem 1rem; }
.warn .said { color: var(--warn); } .error .said { color: var(--bad); font-weight: 600; }
#state[data-state="live"] { color: var(--good); } #state[data-state="lost"] { color: var(--bad); }
@media (max-width: 600px) {
  form, label { flex: 1 1 100%; }
  form label { flex: 1; }
  label > :is(input, select) { flex: 1; width: auto; max-width: none; }
  header > button { flex: 1; }
}
`

/** An event source cannot send a credential in a header, so the script reads the stream itself. */
const script = `
const byId = (id) => document.getElementById(id)
const lines = byId('lines'), state = byId('state'), file = byId('file'), filter = byId('filter'), key = byId('key')
const least = byId('level'), pauseButton = byId('pause')
const KEEP = 2000, SILENT_MS = 45000, KEPT_KEY = 'larder-log-key'
let reading = null
/** Lines that came while the person reads; null while lines are shown as they come. */
let waiting = null
const base = location.pathname.replace(/\\/monitor\\/?$/, '')
const headers = () => ({ 'X-API-Key': key.value.trim() })
const say = (name, text) => { state.dataset.state = name; state.textContent = text }
const refusals = { 401: 'this key is refused', 403: 'this key has no scope diag:read' }
const levels = { 40: ['warn', 'Warning: '], 50: ['error', 'Error: '], 60: ['error', 'Fatal: '] }
const shows = (row) =>
  Number(row.dataset.level) >= Number(least.value) && row.dataset.line.toLowerCase().includes(filter.value.toLowerCase())

function rowOf(line) {
  const row = document.createElement('div')
  row.dataset.line = line
  row.dataset.level = '30'
  let entry
  try { entry = JSON.parse(line) } catch {}
  if (typeof entry !== 'object' || entry === null) { row.append(line); return row }
  const { time, level, msg, ...rest } = entry
  const [name, word] = levels[level] || ['', '']
  row.className = name
  row.dataset.level = String(level || 30)
  const at = document.createElement('time')
  const date = new Date(time)
  if (!isNaN(date)) { at.dateTime = date.toISOString(); at.textContent = at.dateTime.replace('T', ' ').replace('Z', '') }
  const said = document.createElement('span')
  said.className = 'said'
  // An alarm has a sentence of its own.
  said.textContent = word + (msg === 'alarm' && typeof rest.message === 'string' ? 'alarm: ' + rest.message : msg)
  row.append(at, said)
  if (Object.keys(rest).length > 0) {
    const more = document.createElement('details'), summary = document.createElement('summary')
    summary.textContent = 'Details'
    more.append(summary)
    // They are written when a person opens them.
    more.addEventListener('toggle', () => {
      if (more.childElementCount > 1) return
      const text = document.createElement('pre')
      text.textContent = JSON.stringify(rest, null, 2)
      more.append(text)
    })
    row.append(more)
  }
  return row
}

function show(line) {
  if (waiting) {
    waiting.push(line)
    if (waiting.length > KEEP) waiting.shift()
    pauseButton.textContent = 'Go on (' + waiting.length + ' new)'
    return
  }
  const row = rowOf(line)
  row.hidden = !shows(row)
  const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40
  lines.append(row)
  while (lines.childElementCount > KEEP) lines.firstElementChild.remove()
  if (atEnd) lines.scrollTop = lines.scrollHeight
}

function pause() {
  const came = waiting
  waiting = came ? null : []
  pauseButton.setAttribute('aria-pressed', String(waiting !== null))
  pauseButton.textContent = waiting ? 'Go on' : 'Pause'
  for (const line of came || []) show(line)
}

/** The lines that are shown, as they stand in the file. */
function download() {
  const shown = [...lines.children].filter((row) => !row.hidden).map((row) => row.dataset.line)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([shown.join('\\n') + '\\n'], { type: 'text/plain' }))
  link.download = file.value || 'larder.log'
  link.click()
  URL.revokeObjectURL(link.href)
}

/** The service sends something at least every 15 s. A service without power sends no error. */
const inTime = (work) =>
  Promise.race([work, new Promise((_, fail) => AbortSignal.timeout(SILENT_MS).addEventListener('abort', fail))])

async function follow() {
  if (reading) reading.abort()
  const mine = (reading = new AbortController())
  const query = file.value ? '?file=' + encodeURIComponent(file.value) : ''
  if (waiting) pause()
  lines.replaceChildren()
  while (!mine.signal.aborted) {
    const line = new AbortController()
    const options = { headers: headers(), signal: AbortSignal.any([mine.signal, line.signal]) }
    try {
      const past = await inTime(fetch(base + '/view' + (query ? query + '&' : '?') + 'lines=200', options))
      if (past.status in refusals) { sessionStorage.removeItem(KEPT_KEY); return say('lost', refusals[past.status]) }
      if (past.ok) {
        sessionStorage.setItem(KEPT_KEY, key.value.trim())
        const { lines: all } = await inTime(past.json())
        if (waiting) waiting = []
        else lines.replaceChildren()
        for (const line of all) show(line)
      }
      const answer = await inTime(fetch(base + '/stream' + query, options))
      if (!answer.ok) throw new Error(answer.status)
      say('live', 'live')
      let rest = ''
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await inTime(reader.read())
        if (done) break
        const events = (rest + value).split('\\n\\n')
        rest = events.pop()
        for (const event of events) if (event.startsWith('data: ')) show(event.slice(6))
      }
    } catch {}
    line.abort()
    if (mine.signal.aborted) return
    say('lost', 'connection lost, trying again')
    await new Promise((resolve) => AbortSignal.timeout(2000).addEventListener('abort', resolve))
  }
}

async function start(submit) {
  if (submit) submit.preventDefault()
  const answer = await inTime(fetch(base + '/list', { headers: headers() })).catch(() => null)
  if (answer?.ok) {
    const names = (await answer.json()).filter((entry) => !entry.is_dir).map((entry) => entry.path)
    file.disabled = false
    file.replaceChildren(new Option('newest', ''), ...names.map((name) => new Option(name, name)))
  }
  follow()
}
const filterAll = () => { for (const row of lines.children) row.hidden = !shows(row) }
file.addEventListener('change', follow)
byId('who').addEventListener('submit', start)
filter.addEventListener('input', filterAll)
least.addEventListener('change', filterAll)
pauseButton.addEventListener('click', pause)
byId('download').addEventListener('click', download)
// The key lasts as long as the tab, also over a reload.
key.value = sessionStorage.getItem(KEPT_KEY) || ''
if (key.value !== '') start()
`

const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page needs only itself and this service. */
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

/** Follows a log file with a key that the user enters. The browser stores the key while the tab is open. */
export const monitorPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Larder: logs</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body>
<header>
<h1>Larder: logs</h1>
<span id="state" role="status">a key with the scope diag:read is needed</span>
<form id="who"><label>API key <input id="key" type="password" autocomplete="off" required autofocus></label><button>Follow</button></form>
<label>File <select id="file" disabled></select></label>
<label>Level <select id="level"><option value="0">all</option><option value="40">warnings and errors</option><option value="50">errors</option></select></label>
<label>Filter <input id="filter" type="search" autocomplete="off"></label>
<button type="button" id="pause" aria-pressed="false">Pause</button>
<button type="button" id="download">Download</button>
</header>
<main><div id="lines" role="log" aria-label="Lines of the log" tabindex="0"></div></main>
<script>${script}</script>
</body>
</html>
`
