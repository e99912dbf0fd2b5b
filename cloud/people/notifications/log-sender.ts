import type { Log } from '../../../protocol/model/log.ts'
import type { Sender } from './sender.ts'

/** Tells the operator instead of the customer: for a service without push services, and customers without devices. */
export const logSender = (log: Log): Sender => ({
  send(device, { title }, about) {
    log.info({ ...about, platform: device?.platform ?? null, title }, 'notice')
    return Promise.resolve('sent')
  },
})
