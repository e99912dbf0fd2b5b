import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onPath } from '../support/on-path.ts'
import { startDemoPrograms, type DemoPrograms } from '../world/demo.ts'
import { recordingProxy, type RecordedCall, type RecordingProxy } from '../support/recording-proxy.ts'

const root = resolve(import.meta.dirname, '../..')
const guides = join(root, 'cloud/docs/guides')
const folder = mkdtempSync(join(tmpdir(), 'larder-guides-'))
const run = promisify(execFile)

/** The samples of a guide in one language, in order: a later sample continues the earlier ones. */
function samplesOf(guide: string, language: string): string {
  const text = readFileSync(join(guides, guide), 'utf8')
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , sample]) => sample)
    .join('\n')
}

let demo: DemoPrograms
let words: Record<string, string>
/** Proxies between the samples and the demo: one for the cloud, one for the simulator. */
let proxies: RecordingProxy[] = []

beforeAll(async () => {
  demo = await startDemoPrograms({ settings: { SIMULATOR_SPEED: '20' } })
  await demo.ready()
  const { base_url, owner, simulator_url } = demo.file()
  proxies = await Promise.all([recordingProxy(base_url), recordingProxy(simulator_url)])
  words = { base_url: proxies[0]!.url, simulator_url: proxies[1]!.url, api_key: owner.api_key }
}, 300_000)

afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()))
  await demo.stop()
  rmSync(folder, { recursive: true })
})

const filled = (text: string): string => text.replaceAll(/\{\{(\w+)\}\}/g, (_, word: string) => words[word]!)

/** Runs samples as a reader would who copies them; returns their output. */
async function runSamples(language: 'sh' | 'js' | 'python', text: string): Promise<string> {
  if (language === 'sh') return (await run('sh', ['-eu', '-c', text], { timeout: 60_000 })).stdout
  const file = join(folder, `sample-${language}.${language === 'js' ? 'mjs' : 'py'}`)
  writeFileSync(
    file,
    text.replaceAll("'@larder/client'", `'${join(root, '.build/protocol/client/client.js')}'`),
  )
  if (language === 'python') return (await run('python3', [file], { timeout: 60_000 })).stdout
  return (await run(process.execPath, [file], { timeout: 60_000 })).stdout
}

/** Every status that the samples state: `# Expected status: 200 or 201.` */
const statedIn = (samples: string): number[] =>
  distinct(
    [...samples.matchAll(/^(?:#|\/\/) Expected status: ([\d, or]+)\.$/gm)].flatMap(([, list]) =>
      list!.match(/\d{3}/g)!.map(Number),
    ),
  )
const statusesOf = (calls: readonly RecordedCall[]): number[] => distinct(calls.map(({ status }) => status))
const distinct = (numbers: readonly number[]): number[] => [...new Set(numbers)].toSorted((a, b) => a - b)

/** Expected output of the samples of each guide. */
const expected: Record<string, Partial<Record<'sh' | 'js' | 'python', readonly RegExp[]>>> = {
  '01-first-sale.md': {
    sh: [/"payment_status":"completed"/, /"success":true,"order_id":\d+,"results":\[\{"bin_number":\d/],
    js: [/^completed$/m],
  },
  '02-credentials.md': { sh: [/"hub_status":"active"/], python: [/^\[1, 2\]/] },
  '03-idempotency.md': { sh: [/200 OK[\s\S]*200 OK[\s\S]*idempotent-replayed: true/i] },
  '04-paging.md': {
    sh: [/page 1, then &cursor=\d+\npage 2, then &cursor=\d+\npage 3, then &cursor=\d+/],
    python: [/^[6-9]\d products/],
  },
  '05-errors.md': { sh: [/"code":"validation_error"/] },
  '06-limits.md': { sh: [/x-ratelimit-remaining: \d+/i] },
  '07-orders.md': { sh: [/event: |data: \{.*"processing_status_name":"NEW"/] },
  '08-own-payments.md': { sh: [/the money is taken; bin \d/, /"status_code":202.*"processing_status":20/] },
  '10-events.md': { sh: [/"next_cursor":"evt_/], js: [/^order\.paid evt_/m] },
  '10-reports.md': { sh: [/"gross_revenue"/, /^id,type,order_id,/m], js: [/^\d+ payments/m] },
  '11-testing.md': { sh: [/"payment_status":"completed"/, /"jam"/] },
  '12-going-live.md': { sh: [/200\n$/] },
}

test('each guide with calls has samples in curl', () => {
  const without = readdirSync(guides).filter((name) => expected[name] === undefined)
  expect(without).toEqual(['09-webhooks.md', '12-identity-providers.md', '13-changes.md'])
  for (const [name, languages] of Object.entries(expected))
    for (const language of ['sh', 'js', 'python'] as const)
      expect([name, language, samplesOf(name, language) !== '']).toEqual([
        name,
        language,
        language in languages,
      ])
})

const available = { sh: onPath('curl'), js: process.execPath, python: onPath('python3') }
for (const [name, languages] of Object.entries(expected))
  for (const [language, answers] of Object.entries(languages) as [
    'sh' | 'js' | 'python',
    readonly RegExp[],
  ][])
    test.runIf(available[language])(
      `the samples (${language}) of ${name} return the stated statuses`,
      async () => {
        for (const proxy of proxies) proxy.take()
        const samples = samplesOf(name, language)
        const printed = await runSamples(language, filled(samples))
        for (const answer of answers) expect(printed).toMatch(answer)
        const calls = proxies.flatMap((proxy) => proxy.take())
        expect(calls.length).toBeGreaterThan(0)
        expect([calls, statusesOf(calls)]).toEqual([calls, statedIn(samples)])
      },
      90_000,
    )

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
/** The headers of Standard Webhooks' own library, and the effect of one changed byte. */
function delivery(): { headers: Record<string, string>; body: string } {
  const body = '{"type":"order.paid","timestamp":"2026-03-01T12:00:00Z","data":{"note":"für dich"}}'
  const at = new Date()
  return {
    body,
    headers: {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': `v1,bm9uZQ== ${new Webhook(secret).sign('evt_1', at, body)}`,
    },
  }
}

test('the samples of 09-webhooks.md accept only signed deliveries', async () => {
  const { headers, body } = delivery()
  const old = { ...headers, 'webhook-timestamp': '1700000000' }
  const cases = [headers, old].flatMap((given) =>
    [body, body.replace('paid', 'read')].map((text) => [given, text]),
  )
  const js = `${samplesOf('09-webhooks.md', 'js')}
for (const [headers, body] of ${JSON.stringify(cases)}) console.log(isOurs(headers, body, '${secret}'))`
  expect(await runSamples('js', js)).toBe('true\nfalse\nfalse\nfalse\n')
  if (!available.python) return
  const python = `${samplesOf('09-webhooks.md', 'python')}
import json
for headers, body in json.loads(${JSON.stringify(JSON.stringify(cases))}):
    print(is_ours(headers, body.encode(), "${secret}"))`
  expect(await runSamples('python', python)).toBe('True\nFalse\nFalse\nFalse\n')
}, 60_000)
