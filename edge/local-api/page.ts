import { createHash } from 'node:crypto'

/** The technician's page: one file without any outside host, for a telephone before the hub. */

const style = `
:root { color-scheme: light dark; font: 16px/1.4 system-ui, sans-serif }
body { margin: 0 auto; max-width: 60rem; padding: 1rem }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #8884 }
button, input { font: inherit; padding: .3rem .6rem; margin: .1rem }
input[type=number] { width: 5rem }
#said { min-height: 1.5rem; font-weight: 600 }
.bad { color: #c22 }
`

const script = `
const at = (id) => document.getElementById(id)
let token = sessionStorage.getItem('token') || ''
at('token').value = token

function say(text, bad) {
  at('said').textContent = text
  at('said').className = bad ? 'bad' : ''
}

async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: { Authorization: 'Bearer ' + token },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const json = await response.json()
  if (response.ok) return json
  const reason = json.error.details && json.error.details.reason
  throw new Error(json.error.message + (reason ? ' (' + reason + ')' : ''))
}

async function act(what, path, body) {
  say(what + ' …')
  try {
    await call('POST', path, body || {})
    say(what + ': done')
  } catch (error) {
    say(what + ': ' + error.message, true)
  }
  await refresh()
}

function cell(row, content) {
  const td = row.insertCell()
  for (const item of [].concat(content))
    td.append(item instanceof Node ? item : item === null ? '–' : String(item))
}

function button(label, run) {
  const made = document.createElement('button')
  made.textContent = label
  made.onclick = run
  return made
}

function table(id, head, rows) {
  const made = document.createElement('table')
  const top = made.insertRow()
  for (const title of head) {
    const th = document.createElement('th')
    th.textContent = title
    top.append(th)
  }
  for (const cells of rows) {
    const row = made.insertRow()
    for (const content of cells) cell(row, content)
  }
  at(id).replaceChildren(made)
}

const place = (l) => l ? l.cabinet + '-' + l.shelf + '-' + l.row : null

function show(state) {
  at('title').textContent = 'Hub ' + state.hub_id
  at('sync').textContent = 'Cloud: ' + state.sync.phase
    + (state.sync.heardMsAgo === null ? '' : ', heard ' + Math.round(state.sync.heardMsAgo / 1000) + ' s ago')
    + '. Orders: ' + (state.health.accepting_orders ? 'accepted' : 'not accepted')
  const numberOf = (id) => (state.orders.find((order) => order.order_id === id) || { order_number: id }).order_number
  table('bins', ['Bin', 'Status', 'Door', 'Lift', 'Order', ''], state.health.bins.map((bin) => [
    bin.bin_number, bin.fault_code || bin.status, bin.door, bin.lift, numberOf(bin.order_id),
    ['open', 'close', 'raise', 'lower'].map((motion) =>
      button(motion, () => act('Bin ' + bin.bin_number + ' ' + motion, '/api/bins/' + bin.bin_number + '/' + motion))),
  ]))
  table('doors', ['Door', 'Status', ''], state.health.doors.map((door) => [
    door.door, door.status,
    button('unlock for 30 s', () => act('Unlock ' + door.door, '/api/doors/' + door.door + '/unlock', { for_ms: 30000 })),
  ]))
  table('fridges', ['Fridge', 'Status', '°C'], state.health.fridges.map((fridge) =>
    [fridge.fridge_number, fridge.status, fridge.temperature]))
  table('unknown', ['Operation', 'Device', 'What', 'Where', 'Order', 'Did it happen?'], state.unknown_operations.map((op) => [
    op.operation_id.slice(0, 8), op.device, op.action, place(op.location), op.order_number,
    [true, false].map((happened) => button(happened ? 'yes' : 'no', () =>
      act('Settle', '/api/operations/' + op.operation_id + '/settle', { happened }))),
  ]))
  table('orders', ['Order', 'Phase', 'Bins', 'Lines'], state.orders.map((order) => [
    order.order_number, order.phase, order.bins.join(', ') || null,
    order.lines.map((line) => line.product_id + ': ' + line.dropped + '/' + line.quantity).join('; '),
  ]))
  table('links', ['Controller', 'Port', 'Up', 'Firmware', ''], state.links.map((link) => [
    link.controller, link.port, link.up ? 'yes' : 'no', link.firmware,
    state.foreign_controllers.includes(link.controller) ? ['belongs elsewhere ', button('use it here', () =>
      act('Take over ' + link.controller, '/api/controllers/' + link.controller + '/take-over'))] : '',
  ]))
  if (!at('stock').contains(document.activeElement))
    table('stock', ['Facing', 'Product', 'Units', ''], state.stock.map((facing) => {
      const units = document.createElement('input')
      units.type = 'number'
      units.min = '0'
      const send = (path) => () =>
        act('Facing ' + place(facing.location), path, { location: facing.location, units: units.valueAsNumber })
      return [
        place(facing.location) + (facing.blocked ? ' (blocked)' : ''), facing.product_id, facing.quantity,
        [units, button('counted', send('/api/stock/count')), button('added', send('/api/stock/restock'))],
      ]
    }))
}

async function refresh() {
  if (!token) return
  try {
    show(await call('GET', '/api/state'))
    at('content').hidden = false
  } catch (error) {
    say(error.message, true)
  }
}

at('enter').onsubmit = (event) => {
  event.preventDefault()
  token = at('token').value.trim()
  sessionStorage.setItem('token', token)
  say('')
  refresh()
}
refresh()
const repeat = window.setInterval
repeat(refresh, 2000)
`

const section = (id: string, title: string): string => `<h2>${title}</h2><div id="${id}"></div>`

const sections = [
  section('unknown', 'Operations that nobody knows the end of'),
  section('bins', 'Bins'),
  section('doors', 'Doors'),
  section('fridges', 'Fridges'),
  section('orders', 'Orders'),
  section('links', 'Controllers'),
  section('stock', 'Stock'),
].join('\n')

export const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Larder hub</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<h1 id="title">Larder hub</h1>
<form id="enter"><label>Token <input id="token" type="password" autocomplete="off"></label> <button>Enter</button></form>
<p id="said" role="status"></p>
<div id="content" hidden>
<p id="sync"></p>
${sections}
</div>
<script>${script}</script>
</body>
</html>
`

const source = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Nothing but the page's own script and style runs on it, and it speaks with this hub only. */
export const pagePolicy = [
  "default-src 'none'",
  `script-src ${source(script)}`,
  `style-src ${source(style)}`,
  "connect-src 'self'",
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')
