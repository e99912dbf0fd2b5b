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
 * The push service's result for a message. `gone`: the device has unsubscribed and must be deleted.
 * `refused`: the service will never accept it. `later`: the service did not accept it now; send it again. A
 * `send` that throws has an unknown result, and is sent again as well.
 */
export type SendResult = 'sent' | 'gone' | 'refused' | 'later'

export interface About {
  orderId: number
  kind: string
  /** Equal for all copies of a notice: a device shows only one. At most 32 characters of base64url. */
  tag: string
}

export interface Sender {
  /** `device` is null for a customer without a device. */
  send(device: Device | null, message: Message, about: About): Promise<SendResult>
}

/** The meaning of a push service's HTTP status, equal for all services. */
export function resultOf(status: number): SendResult {
  if (status >= 200 && status < 300) return 'sent'
  if (status === 404 || status === 410) return 'gone'
  return status === 429 || status >= 500 ? 'later' : 'refused'
}
