import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { apiCommands, apiNouns } from '../../../cloud/cli/api-commands.ts'
import { runCommandLine, type Terminal } from '../../../cloud/cli/command-line.ts'
import { ApiError } from '../../../cloud/platform/api-error.ts'
import { listen } from '../../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import { sshFailure } from '../../../protocol/contract/owner-controls.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { openCloud } from '../../world/cloud.ts'

const runtime = systemRuntime()
const seen: unknown[] = []
const page = (data: object[], next: string | null) => ({ data, next_cursor: next, has_more: next !== null })
const [one, two] = ['01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000002']
const operation = (id: string) => ({
  id,
  hub_id: 1,
  device: 'row-1-1-1',
  action: 'dispense',
  state: 'unknown',
  order_id: null,
  started_at: '2026-01-01T00:00:00.000Z',
  ended_at: null,
  settled_by: null,
})
const { app, key } = await openCloud({
  handlers: {
    'owner.orders.refund': ({ params, body }: { params: { order_id: number }; body: unknown }) => {
      seen.push({ params, body })
      if (params.order_id === 6)
        throw new ApiError('refund_failed', undefined, { failure_reason: 'lost_or_stolen_card' })
      return Promise.resolve({
        order_id: 5,
        refunded_amount: 100,
        updated_tax: 0,
        payment_status: 'refunded',
      })
    },
    'owner.orders.list': ({ query, wantsOther }: { query: object; wantsOther: boolean }) => {
      seen.push({ ...query, wantsOther })
      return Promise.resolve('order_id,total\r\n9,500\r\n')
    },
    'owner.operations.list': ({ query }: { query: { cursor?: string } }) =>
      Promise.resolve(
        query.cursor === undefined ? page([operation(one)], one) : page([operation(two)], null),
      ),
  } as never,
})
const server = await listen(app, { host: '127.0.0.1', port: 0, runtime, bounds: defaultLimits.http })
afterAll(() => server.close(0))
const environment = {
  LARDER_URL: `http://127.0.0.1:${server.port}`,
  LARDER_API_KEY: await key(['hubs:read', 'controls:read', 'orders:write', 'orders:read']),
}
const terminal: Terminal = { print: () => {}, signal: new AbortController().signal }
const printed: string[] = []
const printing: Terminal = { ...terminal, print: (text) => void printed.push(text) }
const run = (noun: string, args: readonly string[], own = {}, on = terminal) =>
  runCommandLine(apiCommands(noun)!, runtime, args, { ...environment, ...own }, on)

const callable = (Object.entries(routes) as [string, Route][]).filter(
  ([id, { produces }]) =>
    !/^(root|demo)\./.test(id) && (produces === undefined || produces === 'text/event-stream'),
)

test('every route that the client can call is one command, and its help describes each of its values', async () => {
  const commands = apiNouns.flatMap((noun) => Object.keys(apiCommands(noun)!.subcommands))
  expect(commands).toHaveLength(callable.length)
  for (const noun of apiNouns) {
    const { usage, subcommands } = apiCommands(noun)!
    for (const [verb, { options, help }] of Object.entries(subcommands)) {
      expect(usage).toContain(`larder ${noun} ${verb}`)
      for (const option of options.filter((name) => !['url', 'api-key', 'token'].includes(name)))
        expect(help!()).toMatch(new RegExp(`^  --${option}( \\(required\\))?\\n {6}\\S`, 'm'))
    }
    expect((await run(noun, ['--help'])).stdout).toContain('LARDER_URL')
  }
})

test('a command calls its route with the parameters and the body that its options name, and prints the answer as JSON', async () => {
  const list = await run('hubs', ['list'])
  expect([list.exitCode, list.stderr]).toEqual([0, ''])
  expect(JSON.parse(list.stdout)).toEqual([expect.objectContaining({ id: 1, name: 'Hub 1' })])
  await run('orders', ['refund', '5', '--amount', '100', '--destination', 'Bank Account'])
  expect(seen.at(-1)).toEqual({ params: { order_id: 5 }, body: { amount: 100, destination: 'Bank Account' } })
})

test('a failed call prints the code, the message and the details of the service, and has exit status 1', async () => {
  const refused = await run('orders', ['refund', '6'])
  expect(refused.stderr).toMatch(
    /^error: refund_failed: .+ \{"failure_reason":"lost_or_stolen_card"\} \(req_\w+\)\n$/,
  )
  expect(await run('hubs', ['info', '--hub-id', '99'])).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(/^error: hub_not_found: .+ \(req_\w+\)\n$/) as string,
  })
  const missing = await run('inventory', ['list', '--hub-id', '1'])
  expect([missing.exitCode, missing.stderr]).toEqual([1, expect.stringContaining('scope_missing')])
})

test('a missing value, a wrong value and an unknown option are wrong usage, and nothing is called', async () => {
  for (const [noun, args, problem] of [
    ['hubs', ['info'], '--hub-id: is missing'],
    [
      'orders',
      ['refund', 'x', '--amount', 'y'],
      'ORDER_ID: must be a number, not "x"; --amount: must be a number',
    ],
    ['orders', ['refund'], 'ORDER_ID is needed'],
    ['orders', ['refund', '5', '--amuont', '3'], 'did you mean --amount?'],
    ['orders', ['refnd', '5'], 'did you mean refund?'],
  ] as const) {
    const { exitCode, stderr } = await run(noun, args)
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(problem)])
  }
  const without = await run('hubs', ['list'], { LARDER_API_KEY: undefined })
  expect([without.exitCode, without.stderr]).toEqual([
    2,
    expect.stringContaining('LARDER_API_KEY or --api-key'),
  ])
  const guest = await run('customer-wallet', ['balance'])
  expect([guest.exitCode, guest.stderr]).toEqual([2, expect.stringContaining('LARDER_TOKEN or --token')])
})

test('a list is one page, or with --all every page', async () => {
  const first = await run('operations', ['list', '--state', 'unknown'])
  expect(JSON.parse(first.stdout)).toMatchObject({ data: [{ id: one }], has_more: true })
  const all = await run('operations', ['list', '--all'])
  expect(JSON.parse(all.stdout)).toMatchObject([{ id: one }, { id: two }])
})

test('a report is printed as CSV with --csv, also if its list has several pages', async () => {
  const { exitCode, stdout } = await run('orders', ['list', '--hub-id', '1', '--csv'], {}, printing)
  expect([exitCode, stdout, printed.join('')]).toEqual([0, '', 'order_id,total\r\n9,500\r\n'])
  expect(seen.at(-1)).toMatchObject({ hub_id: 1, limit: 20, wantsOther: true })
  const refused = await run('restock', ['list', '--csv'])
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('scope_missing')])
  expect((await run('hubs', ['list', '--csv'])).exitCode).toBe(2)
})

test('on a terminal a list is a table with coloured states; --json prints JSON there, too', async () => {
  const wide = { ...terminal, columns: 400, hasColours: true }
  const { stdout } = await run('operations', ['list'], {}, wide)
  expect(stdout).toContain('\u001b[1mdevice\u001b[22m')
  expect(stdout).toContain('\u001b[31munknown\u001b[39m')
  expect(stdout).toMatch(/next_cursor.*0001/)
  expect(JSON.parse((await run('operations', ['list', '--json'], {}, wide)).stdout)).toMatchObject({
    has_more: true,
  })
})

test('without LARDER_URL the running demo is called with its own keys', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-demo-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const keys = {
    owner: { api_key: environment.LARDER_API_KEY },
    diag: { api_key: environment.LARDER_API_KEY },
  }
  writeFileSync(join(folder, 'demo.json'), JSON.stringify({ base_url: environment.LARDER_URL, ...keys }))
  const own = { LARDER_URL: undefined, LARDER_API_KEY: undefined, DATA_DIR: join(folder, 'cloud') }
  expect(await run('hubs', ['list'], own)).toMatchObject({ exitCode: 0, stderr: '' })
})

test('a command has exit status 1 if its answer reports a failure with status 200', async () => {
  const place = { hub_id: 1, bin_number: 2 }
  const answers = {
    disable_bin_ssh: sshFailure('connection_error', 'The hub does not answer.', place),
    'open-delivery': { success: false, order_id: 5, results: [{ bin_number: 2, success: false }] },
    enable_bin_ssh: { status: 'ok', result: { success: true } },
  }
  const simple = createServer(({ url = '' }, response) => {
    const [, answer] = Object.entries(answers).find(([name]) => url.includes(name))!
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => void simple.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void simple.close())
  const { port } = simple.address() as AddressInfo
  const own = { LARDER_URL: `http://127.0.0.1:${port}`, LARDER_TOKEN: 't' }
  for (const [noun, args, exitCode] of [
    ['controls', ['disable-bin-ssh', '--hub', '1', '--bin', '2'], 1],
    ['controls', ['enable-bin-ssh', '--hub', '1', '--bin', '2'], 0],
    ['customer-orders', ['open-delivery', '1', '5', '--hub-id', '1'], 1],
  ] as const) {
    const outcome = await run(noun, args, own)
    expect(outcome).toMatchObject({ exitCode, stderr: '' })
    expect(JSON.parse(outcome.stdout)).toBeTruthy()
  }
})

test('a stream that cannot be opened leaves one note for each reason, and is opened again', async () => {
  const notes: string[] = []
  const stop = new AbortController()
  const warn = (text: string): void => {
    notes.push(text)
    if (notes.length > 1) stop.abort()
  }
  let opened = 0
  const failing = createServer((_, response) => {
    opened += 1
    response.writeHead(opened < 3 ? 502 : 500).end()
  })
  await new Promise<void>((resolve) => void failing.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void failing.close())
  const { port } = failing.address() as AddressInfo
  const on = { ...terminal, warn, signal: stop.signal }
  const outcome = await run('events', ['stream'], { LARDER_URL: `http://127.0.0.1:${port}` }, on)
  expect(outcome.exitCode).toBe(0)
  expect(notes).toEqual([
    expect.stringContaining('HTTP 502; the command tries again'),
    expect.stringContaining('HTTP 500; the command tries again'),
  ])
  expect(opened).toBe(3)
})
