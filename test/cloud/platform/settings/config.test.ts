import { expect, test } from 'vitest'
import {
  cloudHelp,
  cloudSettings,
  readCloudConfig,
  stripeUrlOf,
} from '../../../../cloud/platform/settings/config.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { settingsIn } from '../../../../protocol/model/program-settings.ts'

// With small limits the defaults differ from the declared ones.
test.skipIf(process.env['SMALL_LIMITS'] === '1')(
  'the whole service runs in one process without any setting',
  () => {
    const result = readCloudConfig({})
    expect(result).toMatchObject({
      ok: true,
      config: {
        PORT: 8080,
        MQTT_PORT: 18830,
        HOST: '127.0.0.1',
        PAYMENTS_URL: 'sandbox:',
        MQTT_URL: undefined,
        IDENTITY_ISSUER: undefined,
        databaseUrl: expect.stringMatching(/^sqlite:\/.*\/data\/cloud\/larder\.sqlite$/) as string,
        limits: defaultLimits,
      },
    })
  },
)

test('the environment takes precedence over the file, and empty variables count as unset', () => {
  const file = { path: 'c.json', text: JSON.stringify({ PORT: 9000, HOST: '::1', WORK_POLL_MS: 5 }) }
  const result = readCloudConfig({ PORT: '9001', HOST: '' }, file)
  expect(result).toMatchObject({ config: { PORT: 9001, HOST: '::1', limits: { rules: { workPollMs: 5 } } } })
})

test('an operator can set the limits of the gateway, and reads days as days', () => {
  const result = readCloudConfig({ LEASE_MS: '6000', GATEWAY_BATCH_ENTRIES: '1', RECORDS_KEPT_DAYS: '7' })
  expect(result).toMatchObject({
    config: {
      limits: {
        rules: { recordsKeptMs: 7 * 24 * 3_600_000 },
        gateway: { leaseMs: 6000, sender: { batchEntries: 1, windowBytes: 65_536 } },
      },
      shown: { GATEWAY_BATCH_ENTRIES: 1, RECORDS_KEPT_DAYS: 7, DEAL_IMAGE_REQUIRED: true },
    },
  })
})

test('every problem of the settings is named with its place', () => {
  const file = { path: 'c.json', text: JSON.stringify({ PROT: 1, MQTT_PORT: 'x' }) }
  const result = readCloudConfig({ PORT: '70000', DATABASE_URL: 'mysql://x' }, file)
  if (result.ok) throw new Error('taken')
  expect(result.problems).toEqual([
    'PROT (c.json): no such setting; --help lists them',
    'PORT (environment): must be between 0 and 65535',
    'DATABASE_URL (environment): must be sqlite:PATH or postgres://…',
    expect.stringMatching(/^MQTT_PORT \(c\.json\): must be a whole number/) as string,
  ])
  for (const text of ['{', '[]', '"x"'])
    expect(readCloudConfig({}, { path: 'c.json', text })).toMatchObject({
      ok: false,
      problems: [expect.stringMatching(/^c\.json: /)],
    })
})

test('production refuses the sandbox and the embedded issuer, and requires its secrets', () => {
  const missing = (env: Record<string, string>) => {
    const result = readCloudConfig({ NODE_ENV: 'production', ...env })
    return result.ok ? [] : result.problems.map((problem) => problem.split(':')[0])
  }
  expect(missing({})).toEqual(['PAYMENTS_URL', 'IDENTITY_ISSUER', 'MEDIA_SECRET', 'STORE_SECRET'])
  expect(missing({ IDENTITY_ISSUER: 'https://id.example/' })).toEqual([
    'PAYMENTS_URL',
    'MEDIA_SECRET',
    'STORE_SECRET',
  ])
  expect(missing({ WEBHOOK_ALLOW_PRIVATE: 'true' })).toContain('WEBHOOK_ALLOW_PRIVATE')
})

test('an unknown NODE_ENV is refused by name, because it may be meant as production', () => {
  for (const NODE_ENV of ['Production', 'production ', 'prod', 'staging', 'live']) {
    const result = readCloudConfig({ NODE_ENV })
    const problems = result.ok ? [] : result.problems
    expect(problems).toEqual([expect.stringMatching(/^NODE_ENV\b.*must be development, test or production/)])
  }
  for (const NODE_ENV of ['development', 'test']) expect(readCloudConfig({ NODE_ENV }).ok).toBe(true)
})

test('Stripe requires its key and its webhook secret, and production is then satisfied', () => {
  const problems = (PAYMENTS_URL: string, env: Record<string, string> = {}) => {
    const result = readCloudConfig({ PAYMENTS_URL, ...env })
    return result.ok ? [] : result.problems.map((problem) => problem.split(':')[0]!.split(' ')[0])
  }
  const keys = { PAYMENTS_API_KEY: 'sk_live_1', PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef' }
  expect(problems('stripe:')).toEqual(['PAYMENTS_API_KEY', 'PAYMENTS_WEBHOOK_SECRET'])
  expect(problems('stripe:', keys)).toEqual([])
  const production = {
    NODE_ENV: 'production',
    IDENTITY_ISSUER: 'https://id.example/',
    MEDIA_SECRET: 'm'.repeat(32),
    STORE_SECRET: 's'.repeat(32),
  }
  expect(problems('stripe:https://api.stripe.com', { ...keys, ...production })).toEqual([])
  for (const wrong of ['stripe', 'stripe:api.stripe.com', 'stripe:https://api.stripe.com/v1', 'paypal:'])
    expect(problems(wrong, keys)).toEqual(['PAYMENTS_URL'])
  const result = readCloudConfig({ PAYMENTS_URL: 'stripe:', ...keys })
  if (!result.ok) throw new Error('refused')
  expect(stripeUrlOf(result.config)).toBe('https://api.stripe.com')
  expect(JSON.stringify(result.config.shown)).not.toMatch(/sk_live_1|whsec_/)
})

const problemsOf = (env: Record<string, string>): string[] => {
  const result = readCloudConfig(env)
  return result.ok ? [] : result.problems
}
/** The setting of a problem, and the permission that would allow it. */
const named = (problem: string) => `${/^\w+/.exec(problem)![0]} ${/ALLOW_INSECURE=(\S+)/.exec(problem)?.[1]}`

test('an insecure service for trials does not start on a reachable address without a named permission', () => {
  const everywhere = { HOST: '0.0.0.0' }
  expect(problemsOf(everywhere).map(named)).toEqual([
    'HOST embedded-issuer',
    'HOST sandbox',
    'HOST plain-http',
    'MQTT_HOST plain-mqtt',
  ])
  const names = 'embedded-issuer,sandbox,plain-http,plain-mqtt'
  expect(problemsOf({ ...everywhere, ALLOW_INSECURE: names })).toEqual([])
  expect(problemsOf({ ...everywhere, ALLOW_INSECURE: 'sandbox, plain-http' }).map(named)).toEqual([
    'HOST embedded-issuer',
    'MQTT_HOST plain-mqtt',
  ])
  expect(problemsOf({ ALLOW_INSECURE: 'all' })).toEqual([expect.stringContaining('ALLOW_INSECURE')])
  for (const HOST of ['127.0.0.1', 'localhost', '::1']) expect(problemsOf({ HOST })).toEqual([])
})

test('keys and passwords leave the machine unencrypted only with a named permission', () => {
  const stripe = { PAYMENTS_API_KEY: 'sk_live_1', PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef' }
  for (const [env, what] of [
    [{ IDENTITY_ISSUER: 'http://id.example' }, 'IDENTITY_ISSUER plain-http'],
    [{ PUBLIC_URL: 'http://shop.example' }, 'PUBLIC_URL plain-http'],
    [{ ...stripe, PAYMENTS_URL: 'stripe:http://proxy.example' }, 'PAYMENTS_URL plain-http'],
    [{ MQTT_URL: 'mqtt://larder-cloud:x@broker.example' }, 'MQTT_URL plain-mqtt'],
    [{ MQTT_URL: 'mqtts://u:p@a.example,mqtt://u:p@b.example' }, 'MQTT_URL plain-mqtt'],
    [{ MQTT_HOST: '0.0.0.0' }, 'MQTT_HOST plain-mqtt'],
    [{ DATABASE_URL: 'postgres://u:p@db.example/larder' }, 'DATABASE_URL plain-database'],
    [{ DATABASE_URL: 'postgres://u:p@127.0.0.1,10.0.0.2/larder' }, 'DATABASE_URL plain-database'],
    [{ DATABASE_URL: 'postgres://u:p@[2001:db8::1]/a?sslmode=prefer' }, 'DATABASE_URL plain-database'],
  ] as const) {
    expect(problemsOf(env).map(named)).toEqual([what])
    expect(problemsOf({ ...env, ALLOW_INSECURE: what.split(' ')[1]! })).toEqual([])
  }
  expect(
    problemsOf({ MQTT_URL: 'mqtts://u:p@broker.example', IDENTITY_ISSUER: 'https://id.example' }),
  ).toEqual([])
  expect(problemsOf({ MQTT_URL: 'mqtts://u:p@a.example, mqtts://u:p@b.example' })).toEqual([])
  expect(problemsOf({ MQTT_URL: 'mqtts://u:p@a.example,b.example' })).toEqual([
    expect.stringContaining('MQTT_URL'),
  ])
  expect(problemsOf({ MQTT_HOST: '0.0.0.0', MQTT_CERT: 'c.pem', MQTT_KEY: 'k.pem' })).toEqual([])
  expect(problemsOf({ MQTT_CERT: 'c.pem' })).toEqual(['MQTT_CERT: it and MQTT_KEY must be set together'])
})

test('a database on this machine or behind TLS needs no permission', () => {
  for (const place of [
    '127.0.0.1/larder',
    '[::1]/larder',
    'localhost/larder?host=/var/run/postgresql',
    'db.example/larder?sslmode=require',
    'h1,h2/larder?sslmode=verify-full&target_session_attrs=primary',
  ])
    expect(problemsOf({ DATABASE_URL: `postgres://u:p@${place}` })).toEqual([])
})

test('a malformed DATABASE_URL is one problem, which names the setting and not the password', () => {
  for (const url of [
    'postgres://u:w0rd@ss/x@h/db',
    'postgres://u:w0rd@h:x/db',
    'postgres://u:w0rd@h/db?sslmode=on',
  ]) {
    const problems = problemsOf({ DATABASE_URL: url })
    expect(problems).toEqual([expect.stringMatching(/^DATABASE_URL \(environment\): \S/)])
    expect(problems.join()).not.toContain('w0rd')
  }
})

test('production accepts neither test payments nor an issuer without checks, with any permission', () => {
  const env = {
    NODE_ENV: 'production',
    ALLOW_INSECURE: 'embedded-issuer,sandbox',
    MEDIA_SECRET: 'm'.repeat(32),
    STORE_SECRET: 's'.repeat(32),
  }
  expect(problemsOf(env).map((problem) => problem.split(':')[0])).toEqual(['PAYMENTS_URL', 'IDENTITY_ISSUER'])
})

test('--help --all lists every setting', () => {
  const names = [...settingsIn(cloudSettings).keys()]
  expect(names).toEqual(expect.arrayContaining(['DATABASE_URL', 'IDLE_ORDER_MS', 'GATEWAY_POLL_MS']))
  for (const name of names) expect(cloudHelp(true)).toContain(`  ${name}\n`)
})

test('secrets are lists: the new one first, former ones after it, each of sufficient length', () => {
  const secrets = (text: string) => readCloudConfig({ MEDIA_SECRET: text })
  const [long, other] = ['m'.repeat(32), 'n'.repeat(40)]
  expect(secrets(`${long}, ${other}`)).toMatchObject({ ok: true, config: { MEDIA_SECRET: [long, other] } })
  expect(secrets(long)).toMatchObject({ ok: true, config: { MEDIA_SECRET: [long] } })
  expect(secrets(`${long},short`).ok).toBe(false)
})

test('a broker at every address of the machine needs an address that boards can call', () => {
  const broker = { MQTT_TLS_PORT: '8883', MQTT_HOST: '0.0.0.0' }
  expect(readCloudConfig(broker)).toEqual({
    ok: false,
    problems: [
      'PUBLIC_URL: enrolled boards find the broker at its host, and no board can call 0.0.0.0: set it, or MQTT_PUBLIC_URL',
    ],
  })
  for (const more of [
    { PUBLIC_URL: 'https://shop.example' },
    { MQTT_PUBLIC_URL: 'mqtts://shop.example:8883' },
    { MQTT_HOST: '192.168.7.2' },
    { MQTT_HOST: '127.0.0.1' },
  ])
    expect(readCloudConfig({ ...broker, ...more })).toMatchObject({ ok: true })
})
