export const noticeKinds = [
  'order_expiring',
  'order_ready',
  'order_unclaimed',
  'order_uncollected',
  'order_failed',
  'order_timed_out',
  'order_refunded',
] as const
export type NoticeKind = (typeof noticeKinds)[number]

export interface Message {
  title: string
  body: string
}

/** A customer's device. Its platform's push service knows it by the token. */
export interface Device {
  platform: 'ios' | 'android' | 'web'
  token: string
}

/**
 * What the push service did with a message. `gone`: the device has unsubscribed and is to be deleted. `refused`: the service
 * will never accept it. `later`: the service did not accept it now; send it again. A `send` that throws means that nobody
 * knows.
 */
export type SendResult = 'sent' | 'gone' | 'refused' | 'later'

export interface Sender {
  /** `device` is null for a customer who has none. */
  send(device: Device | null, message: Message, about: { orderId: number; kind: string }): Promise<SendResult>
}

/** What an HTTP status of a push service means; it is the same for all of them. */
export function resultOf(status: number): SendResult {
  if (status >= 200 && status < 300) return 'sent'
  if (status === 404 || status === 410) return 'gone'
  return status === 429 || status >= 500 ? 'later' : 'refused'
}
