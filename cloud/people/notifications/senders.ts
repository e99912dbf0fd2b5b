import type { Log } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { Senders } from './notices.ts'
import { fcmSender, readServiceAccount } from './fcm-sender.ts'
import type { Sender } from './sender.ts'
import { webPushSender } from './web-push-sender.ts'

export interface SenderConfig {
  FCM_SERVICE_ACCOUNT?: string | undefined
  FCM_URL: string
  VAPID_PUBLIC_KEY?: string | undefined
  VAPID_PRIVATE_KEY?: string | undefined
  VAPID_SUBJECT?: string | undefined
  WEB_PUSH_ORIGINS: readonly string[]
}

/** A notice concerns the next few minutes and is useless afterwards. */
const TTL_SECONDS = 600

/**
 * Sends notices by the configured push services, otherwise to the log. Throws if the configuration is wrong.
 */
export function createSenders(config: SenderConfig, { log, clock }: { log: Log; clock: Clock }): Senders {
  const toLog = logSender(log)
  const fcm =
    config.FCM_SERVICE_ACCOUNT === undefined
      ? toLog
      : fcmSender({
          account: readServiceAccount(config.FCM_SERVICE_ACCOUNT),
          url: config.FCM_URL,
          ttlSeconds: TTL_SECONDS,
          clock,
        })
  return { ios: fcm, android: fcm, web: webSender(config) ?? toLog, none: toLog }
}

function webSender(config: SenderConfig): ReturnType<typeof webPushSender> | undefined {
  const { VAPID_PUBLIC_KEY: publicKey, VAPID_PRIVATE_KEY: privateKey, VAPID_SUBJECT: subject } = config
  if (publicKey === undefined && privateKey === undefined) return undefined
  if (publicKey === undefined || privateKey === undefined || subject === undefined)
    throw new Error('Web Push needs VAPID_PUBLIC_KEY, VAPID_PRIVATE_KEY and VAPID_SUBJECT')
  return webPushSender({
    publicKey,
    privateKey,
    subject,
    origins: config.WEB_PUSH_ORIGINS,
    ttlSeconds: TTL_SECONDS,
  })
}

/** Writes notices to the log: for a service without push services, and for customers without devices. */
export const logSender = (log: Log): Sender => ({
  send(device, { title }, about) {
    log.info({ ...about, platform: device?.platform ?? null, title }, 'notice')
    return Promise.resolve('sent')
  },
})
