import { createApiReference, type ApiReferenceConfiguration } from '@scalar/api-reference'
import '@scalar/api-reference/style.css'
import './page.css'
import { documentOf, type Description, type Visitor } from './document.ts'
import { docsFolder, serviceUrl } from './folder.ts'

/** Shows the reference of one subject, with which each call can be tried. */
export async function show(newName: () => string): Promise<void> {
  const subject = document.querySelector<HTMLMetaElement>('meta[name=subject]')!.content
  const isDemo = document.querySelector('meta[name=demo]') !== null
  const [description, visitor] = await Promise.all([
    read(`${docsFolder}description-${subject}.json`),
    visitorOf(serviceUrl, isDemo, newName),
  ])
  const content = documentOf(description, [], { baseUrl: serviceUrl, ...visitor })
  document.querySelector('#reference')!.replaceChildren()
  document.querySelector('#skip')!.addEventListener('click', skipToText)
  new MutationObserver(nameWhatHasNone).observe(document.querySelector('#reference')!, {
    childList: true,
    subtree: true,
  })
  createApiReference('#reference', {
    content,
    slug: 'api',
    theme: 'none',
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    hideSearch: true,
    hideModels: true,
    showDeveloperTools: 'never',
    documentDownloadType: 'none',
    persistAuth: false,
    defaultOpenFirstTag: true,
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
    hiddenClients: otherLanguages,
    authentication: {
      preferredSecurityScheme: null,
      securitySchemes: {
        ...(visitor.apiKey && { apiKey: { name: 'X-API-Key', in: 'header', value: visitor.apiKey } }),
        ...(visitor.token && { identityToken: { token: visitor.token } }),
      },
    },
  })
}

/** The reference has copy buttons without a name, and a scrolling list that the keyboard cannot reach. */
function nameWhatHasNone(): void {
  for (const button of document.querySelectorAll('#reference button[class*="copy-button"]:not([aria-label])'))
    button.ariaLabel = 'Copy'
  for (const list of document.querySelectorAll<HTMLElement>('#reference ul.endpoints:not([tabindex])'))
    list.tabIndex = 0
}

/** The list at the side has dozens of links. This link lets keyboard users skip it. */
function skipToText(): void {
  const sections = [...document.querySelectorAll<HTMLElement>('main section[id]')]
  const text = sections.find((section) => section.getBoundingClientRect().bottom > window.innerHeight / 4)
  if (text === undefined) return
  text.tabIndex = -1
  text.focus({ preventScroll: true })
}

async function read(url: string): Promise<Description> {
  const answer = await fetch(url)
  if (!answer.ok) throw new Error(`${url} is answered with ${answer.status}`)
  return (await answer.json()) as Description
}

/**
 * Samples are in curl, JavaScript (`fetch`) and Python (`requests`). These other languages of the reference are hidden.
 */
const otherLanguages: NonNullable<ApiReferenceConfiguration['hiddenClients']> = {
  c: true,
  clojure: true,
  csharp: true,
  dart: true,
  fsharp: true,
  go: true,
  http: true,
  java: true,
  js: ['axios', 'jquery', 'ofetch', 'xhr'],
  julia: true,
  kotlin: true,
  node: true,
  objc: true,
  ocaml: true,
  php: true,
  powershell: true,
  python: ['python3', 'httpx_sync', 'httpx_async', 'aiohttp'],
  r: true,
  ruby: true,
  rust: true,
  shell: ['httpie', 'wget'],
  swift: true,
}

const nobody: Visitor = {
  apiKey: undefined,
  token: undefined,
  userId: undefined,
  hubId: undefined,
  productId: undefined,
}

/** In a demo the reader is an owner and a customer; elsewhere readers use their own credentials. */
async function visitorOf(baseUrl: string, isDemo: boolean, newName: () => string): Promise<Visitor> {
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
    // The reader enters the missing values.
    return nobody
  }
}

/** The same guest while the tab is open. */
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
