import { createECDH } from 'node:crypto'
import type { Log } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { Senders } from './notices.ts'
import { fcmSender, readServiceAccount } from './fcm-sender.ts'
import type { Sender } from './sender.ts'
import { webPushSender } from './web-push-sender.ts'

export interface SenderConfig {
  FCM_SERVICE_ACCOUNT?: string | undefined
  FCM_URL: string
  VAPID_PRIVATE_KEY?: string | undefined
  VAPID_SUBJECT?: string | undefined
  PUBLIC_URL?: string | undefined
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
  const { VAPID_PRIVATE_KEY: privateKey, VAPID_SUBJECT: subject = config.PUBLIC_URL } = config
  if (privateKey === undefined) return undefined
  if (!/^(mailto|https):/.test(subject ?? ''))
    throw new Error('Web Push needs VAPID_SUBJECT, or a PUBLIC_URL with https')
  return webPushSender({
    publicKey: publicKeyOf(privateKey),
    privateKey,
    subject: subject!,
    origins: config.WEB_PUSH_ORIGINS,
    ttlSeconds: TTL_SECONDS,
  })
}

/** The public key of a private key of Web Push (P-256), both in base64url. */
export function publicKeyOf(privateKey: string): string {
  const pair = createECDH('prime256v1')
  try {
    pair.setPrivateKey(privateKey, 'base64url')
  } catch {
    throw new Error('VAPID_PRIVATE_KEY is no private key of Web Push')
  }
  return pair.getPublicKey('base64url', 'uncompressed')
}

/** Writes notices to the log: for a service without push services, and for customers without devices. */
export const logSender = (log: Log): Sender => ({
  send(device, { title }, about) {
    log.info({ ...about, platform: device?.platform ?? null, title }, 'notice')
    return Promise.resolve('sent')
  },
})
