import type { Message } from './notice.ts'

/** A device of a customer's. The token is what its platform's service knows it by. */
export interface Device {
  platform: 'ios' | 'android' | 'web'
  token: string
}

/**
 * What became of a message. `gone`: the device has unsubscribed, and is to be forgotten. `refused`: it will never be taken.
 * `later`: it was not taken, and may be sent again. An error thrown means that nobody knows.
 */
export type SendResult = 'sent' | 'gone' | 'refused' | 'later'

export interface Sender {
  /** `device` is null for a customer who has none. */
  send(device: Device | null, message: Message, about: { orderId: number; kind: string }): Promise<SendResult>
}

/** How services of platforms answer, in one table: HTTP statuses have the same meaning with all of them. */
export function resultOf(status: number): SendResult {
  if (status >= 200 && status < 300) return 'sent'
  if (status === 404 || status === 410) return 'gone'
  return status === 429 || status >= 500 ? 'later' : 'refused'
}
