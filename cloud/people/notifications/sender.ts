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
 * knows: it is sent again as well.
 */
export type SendResult = 'sent' | 'gone' | 'refused' | 'later'

export interface About {
  orderId: number
  kind: string
  /** The same for each copy of a notice: a device shows one of them. At most 32 characters of base64url. */
  tag: string
}

export interface Sender {
  /** `device` is null for a customer who has none. */
  send(device: Device | null, message: Message, about: About): Promise<SendResult>
}

/** What an HTTP status of a push service means; it is the same for all of them. */
export function resultOf(status: number): SendResult {
  if (status >= 200 && status < 300) return 'sent'
  if (status === 404 || status === 410) return 'gone'
  return status === 429 || status >= 500 ? 'later' : 'refused'
}
