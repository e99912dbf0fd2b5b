import { readFileSync } from 'node:fs'
import { importPKCS8, SignJWT } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { optional } from '../../platform/tolerant.ts'
import { resultOf, type Sender } from './sender.ts'

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'
const TIMEOUT_MS = 10_000
/** The longest lifetime that Google accepts. */
const TOKEN_SECONDS = 3600
/** A token is replaced this long before it ends: time for the request, and for a clock ahead of ours. */
const RENEW_SECONDS = 300

const ServiceAccount = z.object({
  project_id: z.string().min(1),
  client_email: z.string().min(1),
  private_key_id: optional(z.string()),
  private_key: z.string().min(1),
})
export type ServiceAccount = z.infer<typeof ServiceAccount>

export const readServiceAccount = (path: string): ServiceAccount =>
  ServiceAccount.parse(JSON.parse(readFileSync(path, 'utf8')))

export interface FcmOptions {
  account: ServiceAccount
  /** FCM's origin, without a trailing slash. */
  url: string
  /** Seconds for which FCM keeps a message for a device that it cannot reach. */
  ttlSeconds: number
  clock: Clock
}

/** Firebase Cloud Messaging, HTTP v1, for iOS and Android. */
export function fcmSender({ account, url, ttlSeconds, clock }: FcmOptions): Sender {
  const bearer = selfSignedTokens(account, clock)
  const address = `${url}/v1/projects/${encodeURIComponent(account.project_id)}/messages:send`
  return {
    async send(device, message, { orderId, kind, tag }) {
      if (!device) return 'refused'
      const response = await fetch(address, {
        method: 'POST',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
        headers: { Authorization: `Bearer ${await bearer()}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({
          message: {
            token: device.token,
            notification: message,
            data: { order_id: String(orderId), kind },
            android: { ttl: `${ttlSeconds}s`, notification: { tag } },
            apns: { headers: { 'apns-collapse-id': tag } },
          },
        }),
      })
      const result = resultOf(response.status)
      if (result === 'gone') return (await isUnregistered(response)) ? 'gone' : 'refused'
      await response.body?.cancel()
      return result
    },
  }
}

const Failure = z.object({
  error: z.object({
    details: z.array(z.object({ errorCode: optional(z.string()) }).catch({})).catch([]),
  }),
})

/**
 * Whether a device's token is no longer valid. A 404 for a missing project or address does not concern the
 * device.
 */
async function isUnregistered(response: Response): Promise<boolean> {
  const failure = Failure.safeParse(await response.json().catch(() => null))
  return failure.success && failure.data.error.details.some(({ errorCode }) => errorCode === 'UNREGISTERED')
}

/**
 * Tokens that the service account signs itself (Google's AIP-4111). The API accepts them directly, so no
 * token endpoint is needed. One token is reused for most of its life.
 */
function selfSignedTokens(account: ServiceAccount, clock: Clock): () => Promise<string> {
  let current: { token: string; endsAt: number } | undefined
  return async () => {
    const now = Math.floor(clock.now() / 1000)
    if (current && now < current.endsAt - RENEW_SECONDS) return current.token
    const endsAt = now + TOKEN_SECONDS
    const token = await new SignJWT({ scope: SCOPE })
      .setProtectedHeader({
        alg: 'RS256',
        typ: 'JWT',
        ...(typeof account.private_key_id === 'string' && { kid: account.private_key_id }),
      })
      .setIssuer(account.client_email)
      .setSubject(account.client_email)
      .setIssuedAt(now)
      .setExpirationTime(endsAt)
      .sign(await importPKCS8(account.private_key, 'RS256'))
    current = { token, endsAt }
    return token
  }
}
