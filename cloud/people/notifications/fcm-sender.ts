import { readFileSync } from 'node:fs'
import { JWT } from 'google-auth-library'
import { z } from 'zod'
import { resultOf, type Sender } from './sender.ts'

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'
const TIMEOUT_MS = 10_000

const ServiceAccount = z.object({
  project_id: z.string().min(1),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
})
export type ServiceAccount = z.infer<typeof ServiceAccount>

export const readServiceAccount = (path: string): ServiceAccount =>
  ServiceAccount.parse(JSON.parse(readFileSync(path, 'utf8')))

export interface FcmOptions {
  account: ServiceAccount
  /** Where FCM is, without a slash at its end. */
  url: string
  /** Seconds a message is kept for a device that is not reachable. */
  ttlSeconds: number
}

/** Firebase Cloud Messaging, HTTP v1, for iOS and Android. Requests carry a token signed here: no other service is asked. */
export function fcmSender({ account, url, ttlSeconds }: FcmOptions): Sender {
  const client = new JWT({ email: account.client_email, key: account.private_key, scopes: [SCOPE] })
  client.useJWTAccessWithScope = true
  const address = `${url}/v1/projects/${encodeURIComponent(account.project_id)}/messages:send`
  return {
    async send(device, message, { orderId, kind }) {
      if (!device) return 'refused'
      const headers = await client.getRequestHeaders(address)
      const response = await fetch(address, {
        method: 'POST',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
        headers: {
          Authorization: headers.get('Authorization') ?? '',
          'Content-Type': 'application/json',
        },
        body: JSON.stringify({
          message: {
            token: device.token,
            notification: message,
            data: { order_id: String(orderId), kind },
            android: { ttl: `${ttlSeconds}s` },
          },
        }),
      })
      await response.body?.cancel()
      return resultOf(response.status)
    },
  }
}
