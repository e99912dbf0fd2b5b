import type { Cloud } from '../../cloud/cloud.ts'

/** An answer that a page receives. */
interface PageAnswer {
  status: number
  headers: Headers
  json: unknown
  text: string
}

/** The cookies of a browser, and its calls: Fetch Metadata as Chromium sends it. */
export class TestBrowser {
  readonly cookies = new Map<string, string>()
  csrf: string | null = null
  readonly #app: Cloud['app']
  readonly #origin: string

  constructor(app: Cloud['app'], origin = 'http://127.0.0.1:8080') {
    this.#app = app
    this.#origin = origin
  }

  /** A call of a page; by default of the service's own page, with its CSRF token. */
  async call(
    method: string,
    path: string,
    {
      body,
      headers = {},
      site = 'same-origin',
    }: { body?: object; headers?: Record<string, string>; site?: string } = {},
  ): Promise<PageAnswer> {
    const answer = await this.open(
      method,
      path,
      {
        'Sec-Fetch-Site': site,
        ...(this.csrf !== null && method !== 'GET' && { 'X-CSRF-Token': this.csrf }),
        ...(body && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body && JSON.stringify(body),
    )
    const text = await answer.text()
    const isJson = answer.headers.get('Content-Type')?.startsWith('application/json')
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    }
  }

  async open(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Response> {
    const { host } = new URL(this.#origin)
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await this.#app.request(new URL(path, this.#origin).href, {
      method,
      headers: { Host: host, ...(cookie !== '' && { Cookie: cookie }), ...headers },
      ...(body !== undefined && { body }),
    })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, decodeURIComponent(value))
    }
    return answer
  }

  /** Reads who it is, and remembers the CSRF token. */
  async session(): Promise<Record<string, unknown>> {
    const { json } = await this.call('GET', '/session')
    this.csrf = (json as { csrf: string | null }).csrf
    return json as Record<string, unknown>
  }

  async becomeGuest(): Promise<number> {
    const { json } = await this.call('POST', '/session/guest')
    const { csrf, user_id } = json as { csrf: string; user_id: number }
    this.csrf = csrf
    return user_id
  }

  /** Follows the links of a sign-in at the demo's issuer. Returns the address at which it ends. */
  async signIn(as: string, returnTo = '/console'): Promise<string> {
    const follow = async (to: string): Promise<string> => {
      const answer = await this.open('GET', to, { 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate' })
      return answer.headers.get('Location')!
    }
    const authorize = new URL(await follow(`/session/sign-in?return_to=${encodeURIComponent(returnTo)}`))
    authorize.searchParams.set('as', as)
    const end = await follow(await follow(authorize.href))
    await this.session()
    return end
  }
}
