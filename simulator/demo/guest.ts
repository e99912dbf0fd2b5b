import { type Client, createClient, unwrap } from '../../protocol/client/client.ts'
import { jsonInterface } from '../interface/client.ts'

interface GuestWithCart {
  client: Client
  token: string
  userId: number
  orderId: number
}

/**
 * Lets a guest of the demo open a cart at a hub. `subject`: the guest's name at the demo's issuer. `tries`: maximum
 * number of tries of each call. Throws if the cloud does not answer or refuses.
 */
export async function guestWithCart(
  baseUrl: string,
  { subject, hubId, tries = 5 }: { subject: string; hubId: number; tries?: number },
): Promise<GuestWithCart> {
  const cloud = jsonInterface({ url: baseUrl, name: 'the cloud' })
  const { access_token: token } = await cloud.ask<{ access_token: string }>('POST', '/demo/identity/token', {
    sub: subject,
    anonymous: true,
  })
  const client = createClient({ baseUrl, token, retry: { tries } })
  const { user_id: userId } = unwrap(await client.call('POST /users/user/bootstrap/guest'))
  const { order_id: orderId } = unwrap(
    await client.call('POST /users/{user_id}/orders', {
      params: { user_id: userId },
      query: { hub_id: hubId },
    }),
  )
  return { client, token, userId, orderId }
}
