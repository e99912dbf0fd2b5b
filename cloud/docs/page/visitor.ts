import type { Visitor } from './document.ts'

const nobody: Visitor = {
  apiKey: undefined,
  token: undefined,
  userId: undefined,
  hubId: undefined,
  productId: undefined,
}

/** In a demo whoever reads is an owner and a customer at once; elsewhere they bring their own credentials. */
export async function visitorOf(baseUrl: string, isDemo: boolean, newName: () => string): Promise<Visitor> {
  if (!isDemo) return nobody
  try {
    const { api_key } = await call<{ api_key: string | null }>(`${baseUrl}/demo/credentials`)
    const { access_token: token } = await call<{ access_token: string }>(`${baseUrl}/demo/identity/token`, {
      body: { sub: guestName(newName), anonymous: true },
    })
    const { user_id } = await call<{ user_id: number }>(`${baseUrl}/api/v1/users/user/bootstrap/guest`, {
      token,
      body: {},
    })
    const hubs = api_key
      ? await call<{ id: number }[]>(`${baseUrl}/api/v1/owners/hubs`, { apiKey: api_key })
      : []
    const hubId = hubs[0]?.id
    const products = hubId
      ? await call<{ id: number; quantity: number }[]>(`${baseUrl}/api/v1/hubs/${hubId}/products`)
      : []
    return {
      apiKey: api_key ?? undefined,
      token,
      userId: user_id,
      hubId,
      productId: (products.find(({ quantity }) => quantity > 1) ?? products[0])?.id,
    }
  } catch {
    // What cannot be filled in is typed in.
    return nobody
  }
}

/** The same guest as long as the tab is open. */
function guestName(newName: () => string): string {
  const kept = sessionStorage.getItem('larder-guest')
  if (kept !== null) return kept
  const made = newName()
  sessionStorage.setItem('larder-guest', made)
  return made
}

async function call<Answer>(
  url: string,
  { token, apiKey, body }: { token?: string; apiKey?: string; body?: object } = {},
): Promise<Answer> {
  const answer = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...(body && { 'Content-Type': 'application/json' }),
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(apiKey && { 'X-API-Key': apiKey }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${url} is answered with ${answer.status}`)
  return (await answer.json()) as Answer
}
