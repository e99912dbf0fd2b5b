import { createHash } from 'node:crypto'

/** The technician's page: one file, no other host. It reads and writes through the HTTP interface only. */
export function technicianPage(hubs: readonly number[]): string {
  const options = hubs.map((id) => `<option value="${id}">hub ${id}</option>`).join('')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Larder simulator</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<h1>Larder simulator <select id="hub" aria-label="Hub">${options}</select></h1>
<p id="message" role="status"></p>
<div class="columns">
  <section><h2>Bins</h2><table id="bins"></table>
    <h2>Doors</h2><table id="doors"></table>
    <h2>Fridges</h2><table id="fridges"></table>
    <h2>Controllers</h2><table id="controllers"></table>
    <p><button data-power="off">Power off</button> <button data-power="on">Power on</button></p></section>
  <section><h2>Rows</h2><div id="rows"></div></section>
  <section><h2>Raise a fault</h2>
    <form id="fault"><label>Type <select name="type" id="types"></select></label>
      <p id="description"></p>
      <label>Target <input name="target" list="targets" placeholder="all"></label><datalist id="targets"></datalist>
      <label>For ms <input name="for_ms" type="number" min="1"></label>
      <label>Probability <input name="probability" type="number" min="0" max="1" step="any"></label>
      <button>Raise</button></form>
    <h2>Active faults</h2><table id="faults"></table></section>
  <section class="wide"><h2>What happened</h2><table id="log"></table></section>
</div>
<script>${script}</script>
</html>
`
}

const style = `
body{font:15px/1.4 system-ui,sans-serif;margin:1rem 2rem;color:#222;background:#fafafa}
h1{font-size:1.3rem}h2{font-size:1rem;margin:1rem 0 .3rem}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:0 2rem}
section:not(.wide) td{white-space:nowrap}
.wide{grid-column:1/-1}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #ddd;padding:.15rem .4rem;text-align:left;font-weight:normal;vertical-align:top}
label{display:block;margin:.2rem 0}button{font:inherit}#message:empty{display:none}
#message{background:#fff3cd;padding:.4rem}#rows table{font-variant-numeric:tabular-nums}#description{color:#666;margin:.2rem 0}
`

// Text from the interface goes into the page as text nodes only.
const script = `
const $ = (id) => document.getElementById(id)
const base = () => '/api/hubs/' + $('hub').value
let after = 0
const say = (text) => { $('message').textContent = text }
async function call(method, path, body) {
  const answer = await fetch(base() + path, { method, body: body && JSON.stringify(body) })
  const json = await answer.json()
  if (!answer.ok) throw new Error(json.error.message)
  return json
}
const attempt = (work) => async (event) => {
  event?.preventDefault()
  try { say(''); await work(event); await refresh() } catch (error) { say(error.message) }
}
function button(text, work) {
  const element = document.createElement('button')
  element.textContent = text
  element.onclick = attempt(work)
  return element
}
function fill(table, rows) {
  table.replaceChildren(...rows.map((cells) => {
    const tr = document.createElement('tr')
    for (const cell of cells) {
      const td = document.createElement('td')
      td.append(...(Array.isArray(cell) ? cell : [cell]))
      tr.append(td)
    }
    return tr
  }))
}
const act = (body) => call('POST', '/act', body)
async function refresh() {
  const state = await call('GET', '/state')
  fill($('bins'), state.bins.map((bin) => [bin.bin, 'door ' + bin.door, 'lift ' + bin.lift, bin.units + ' units',
    [button('take', () => act({ action: 'take_items', target: bin.bin })),
     button('close', () => act({ action: 'close_door', target: bin.bin }))]]))
  fill($('doors'), state.doors.map(({ door, open, locked }) => [door, locked ? 'locked' : 'unlocked',
    open ? 'open' : 'closed', button(open ? 'close' : 'open',
      () => act({ action: open ? 'close_door' : 'open_door', target: door }))]))
  fill($('fridges'), state.fridges.map(({ fridge, celsius }) => [fridge, celsius.toFixed(1) + ' °C']))
  fill($('controllers'), state.controllers.map((one) => [one.controller, one.powered ? 'on' : 'off',
    one.connected ? 'connected' : 'not connected', button('reset', () => act({ action: 'press', target: one.controller }))]))
  fill($('faults'), state.faults.map((fault) => [fault.type, fault.target ?? 'all',
    fault.remaining_ms === null ? 'until cleared' : Math.ceil(fault.remaining_ms / 1000) + ' s',
    button('clear', () => call('DELETE', '/faults/' + fault.id))]))
  const cabinets = Map.groupBy ? Map.groupBy(state.rows, (row) => row.cabinet) : new Map()
  if (!Map.groupBy) for (const row of state.rows)
    cabinets.set(row.cabinet, [...(cabinets.get(row.cabinet) ?? []), row])
  $('rows').replaceChildren(...[...cabinets].map(([cabinet, rows]) => {
    const table = document.createElement('table')
    const shelves = [...new Set(rows.map((row) => row.shelf))]
    fill(table, shelves.map((shelf) => ['cabinet ' + cabinet + ', shelf ' + shelf,
      rows.filter((row) => row.shelf === shelf).map((row) => row.units + '/' + row.depth).join('   ')]))
    return table
  }))
  $('targets').replaceChildren(...[...state.bins.map((b) => b.bin), ...state.fridges.map((f) => f.fridge),
    ...state.doors.map((d) => d.door), ...state.controllers.map((c) => c.controller),
    ...cabinets.keys()].map((name) => new Option(typeof name === 'number' ? 'cabinet-' + name : name)))
  for (const one of await call('GET', '/actuations?after=' + after)) {
    after = one.n
    const row = $('log').insertRow(0)
    for (const text of [one.n, one.at, one.device, one.action, one.operation_id ?? '', JSON.stringify(one.detail)])
      row.insertCell().textContent = text
    if ($('log').rows.length > 200) $('log').deleteRow(-1)
  }
}
$('fault').onsubmit = attempt(async () => {
  const form = new FormData($('fault'))
  const body = { type: form.get('type') }
  if (form.get('target')) body.target = form.get('target')
  for (const key of ['for_ms', 'probability']) if (form.get(key)) body[key] = Number(form.get(key))
  await call('POST', '/faults', body)
})
for (const one of document.querySelectorAll('[data-power]'))
  one.onclick = attempt(() => call('POST', '/power', { state: one.dataset.power }))
$('hub').onchange = attempt(() => { after = 0; $('log').replaceChildren() })
let types = []
const describe = () => { $('description').textContent = types.find((t) => t.type === $('types').value)?.description ?? '' }
$('types').onchange = describe
attempt(async () => {
  types = await call('GET', '/faults/types')
  $('types').replaceChildren(...types.map((one) => new Option(one.type)))
  describe()
})()
const repeat = window.setInterval
repeat(() => refresh().catch((error) => say(error.message)), 1000)
`

const source = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Nothing but the page's own script and style runs on it, and it speaks with this simulator only. */
export const pagePolicy = [
  "default-src 'none'",
  `script-src ${source(script)}`,
  `style-src ${source(style)}`,
  'img-src data:',
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')
