import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createTransport } from 'nodemailer'
import { addressOf, bareHost } from '../../../protocol/model/address.ts'
import { counted } from '../../../protocol/model/counted.ts'
import {
  certificateEnd,
  certificateFinding,
  clockFinding,
  CONNECT_TIMEOUT_MS,
  fail,
  ok,
  reportOf,
  warn,
  worst,
  type Check,
  type Checks,
  type Finding,
} from '../../../protocol/model/doctor.ts'
import { isLoopback } from '../../../protocol/model/exposure.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { missingPermissions } from '../../commerce/processors/stripe/account.ts'
import { brokerQuestions } from '../../gateway/broker-check.ts'
import { remoteKeys } from '../../platform/identity/remote-keys.ts'
import { openMediaStore } from '../../platform/media/open-store.ts'
import { stripeUrlOf, type CloudConfig } from '../../platform/settings/config.ts'
import { installationOf } from '../backup/place.ts'

/** The ports of this machine, and its certificates. */
export const listenerChecks = (config: CloudConfig, runtime: Runtime): Checks => {
  const { HOST, PORT, MQTT_HOST = HOST, MQTT_PORT, MQTT_URL, MQTT_CERT, MQTT_CA, PUBLIC_URL } = config
  const isRunning = () =>
    ask(`http://${HOST === '0.0.0.0' ? '127.0.0.1' : HOST}:${PORT}/healthz`, runtime).then(
      async ({ answer }) => answer.ok && (await answer.text()).includes('"ok"'),
      () => false,
    )
  const port =
    (setting: string, host: string, number: number): Check =>
    async () => {
      if (number === 0) return undefined
      const who = await listenerOf(bareHost(host), number, isRunning)
      if (who === 'other')
        return fail(
          `${setting}: another program listens on port ${number}`,
          `Find that program with ss -ltnp and end it, or set ${setting} to a free port.`,
        )
      return ok(who === 'service' ? `the service listens on port ${number}` : `port ${number} is free`)
    }
  const certificates = { MQTT_CERT, MQTT_CA }
  return {
    'http port': port('PORT', HOST, PORT),
    'broker port': async () =>
      MQTT_URL === undefined ? port('MQTT_PORT', MQTT_HOST, MQTT_PORT)() : undefined,
    certificates() {
      const known = Object.entries(certificates).filter(([, path]) => path !== undefined)
      const findings = known.map(([name, path]) =>
        certificateFinding(
          name,
          Date.parse(new X509Certificate(readFileSync(path!)).validTo),
          runtime.clock.now(),
        ),
      )
      return worst(findings, ok('no certificate files are set'))
    },
    async 'public address'() {
      if (PUBLIC_URL === undefined)
        return warn(
          'PUBLIC_URL is not set',
          'Set PUBLIC_URL to the address by which callers know the service.',
        )
      if (!PUBLIC_URL.startsWith('https:'))
        return warn(
          `${PUBLIC_URL} is not encrypted`,
          'Put a proxy with TLS in front, and set PUBLIC_URL to its https: address.',
        )
      return certificateFinding(
        'of PUBLIC_URL',
        await certificateEnd(connectTls, addressOf(PUBLIC_URL, { 'https:': 443 })),
        runtime.clock.now(),
      )
    },
    proxy: () =>
      PUBLIC_URL?.startsWith('https:') === true && isLoopback(HOST) && config.TRUSTED_PROXIES === 0
        ? warn(
            'TRUSTED_PROXIES is 0 behind a proxy: all callers share one limit',
            'Set TRUSTED_PROXIES to the number of proxies.',
          )
        : ok(`TRUSTED_PROXIES is ${config.TRUSTED_PROXIES}`),
    broker: () => brokerFinding(config, runtime),
  }
}

/** The answers of an external broker to the cloud's user. */
async function brokerFinding({ MQTT_URL, MQTT_CA }: CloudConfig, runtime: Runtime): Promise<Finding> {
  const [cloud] = MQTT_URL ?? []
  if (cloud === undefined) return ok('the broker is inside the service')
  const ca = MQTT_CA === undefined ? undefined : readFileSync(MQTT_CA, 'utf8')
  const { checks, close } = brokerQuestions({ cloud }, { runtime, ca })
  const { checks: answers } = await reportOf({ part: 'broker', version: '', clock: runtime.clock, checks })
  close()
  const faults = answers.flatMap(({ name, ...found }) =>
    found.result === 'OK' ? [] : [{ ...found, message: `${name}: ${found.message}` }],
  )
  return worst(faults, ok(`${counted(answers.length, 'right answer')} of the broker`))
}

/** The services of others that the cloud needs. */
export const partnerChecks = (config: CloudConfig, runtime: Runtime): Checks => {
  const { IDENTITY_ISSUER: [issuer] = [], IDENTITY_JWKS_URL: jwksUrl, SMTP_URL, PAYMENTS_API_KEY } = config
  const { clock } = runtime
  return {
    async issuer() {
      if (issuer === undefined)
        return warn('the embedded issuer gives everybody a token', 'Set IDENTITY_ISSUER.')
      await remoteKeys({ issuer, jwksUrl, refetchMs: 1000, clock, log: silentLog }).check()
      return ok(`${issuer} publishes its keys`)
    },
    async clock() {
      if (issuer === undefined) return undefined
      const { aheadMs } = await ask(jwksUrl ?? `${issuer}/.well-known/openid-configuration`, runtime)
      return aheadMs === undefined ? undefined : clockFinding('that of the issuer', aheadMs)
    },
    async payments() {
      const url = stripeUrlOf(config)
      if (url === undefined)
        return warn('the sandbox moves no money', 'Set PAYMENTS_URL to stripe: for real payments.')
      const headers = { Authorization: `Bearer ${PAYMENTS_API_KEY}` }
      const { answer } = await ask(`${url}/v1/disputes?limit=1`, runtime, headers).catch(() => ({
        answer: undefined,
      }))
      if (!answer)
        return fail(`${url} does not answer`, 'Check the network and the firewall of this machine.')
      if (answer.status === 401)
        return fail(
          'the processor does not know PAYMENTS_API_KEY',
          "Copy the key from the processor's dashboard into PAYMENTS_API_KEY.",
        )
      const options = { apiKey: PAYMENTS_API_KEY!, url, installation: 'doctor', clock, log: silentLog }
      const missing = await missingPermissions({ ...options, timeoutMs: config.PAYMENTS_TIMEOUT_MS })
      if (missing.length === 0) return ok('the key of the processor has every permission')
      return fail(
        `PAYMENTS_API_KEY lacks: ${missing.join(', ')}`,
        "Add the permissions in the processor's dashboard.",
      )
    },
    async mail() {
      if (SMTP_URL === undefined)
        return warn('alarms are not mailed', 'Set SMTP_URL, then add contacts with larder contacts add.')
      const transport = createTransport({
        url: SMTP_URL,
        connectionTimeout: 5000,
        greetingTimeout: 5000,
        socketTimeout: 5000,
      })
      try {
        await transport.verify()
        return ok('the mail server accepts the sign-in')
      } finally {
        transport.close()
      }
    },
    async media() {
      const { accessKeyId, secretAccessKey } = installationOf(config, runtime).credentials
      const store = openMediaStore(config.mediaUrl, { accessKeyId, secretAccessKey })
      const key = `doctor/${uuidv7(runtime)}.txt`
      try {
        await store.write(key, 'text/plain', pieces())
        const stored = await store.read(key)
        if (stored === null)
          return fail(
            'the media store does not return a file',
            'Check the rights of the bucket or folder in MEDIA_URL.',
          )
        await stored.cancel()
      } finally {
        await store.remove(key).catch(() => {})
      }
      return ok('the media store stores, returns and removes files')
    },
  }
}

// eslint-disable-next-line @typescript-eslint/require-await
async function* pieces(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('doctor')
}

/** The calls to other programs and machines that the doctor makes. Each rejects if it gets no answer. */

/** The answer of a GET and the difference between this clock and its `Date`, in milliseconds. */
async function ask(
  url: string,
  { clock }: Runtime,
  headers: Record<string, string> = {},
): Promise<{ answer: Response; aheadMs: number | undefined }> {
  const answer = await fetch(url, {
    headers,
    signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS),
    redirect: 'manual',
  })
  const date = Date.parse(answer.headers.get('date') ?? '')
  return { answer, aheadMs: Number.isNaN(date) ? undefined : clock.now() - date }
}

/** Finds out who uses an address: this service, another program, or nobody. */
async function listenerOf(host: string, port: number, isOurs: () => Promise<boolean>) {
  const isFree = await new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
  if (isFree) return 'nobody' as const
  return (await isOurs()) ? ('service' as const) : ('other' as const)
}
