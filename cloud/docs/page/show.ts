import { createApiReference } from '@scalar/api-reference'
import '@scalar/api-reference/style.css'
import './page.css'
import { otherLanguages } from './languages.ts'
import { documentOf, type Description } from './document.ts'
import { guidesFor } from './guides.ts'
import { visitorOf } from './visitor.ts'

/** The folder of the service, wherever a proxy has put it: the page is `docs` in it. */
const service = new URL(location.pathname.endsWith('/') ? '..' : '.', location.href)
const baseUrl = service.href.replace(/\/$/, '')

export async function show(newName: () => string): Promise<void> {
  const description = await read(`${baseUrl}/openapi.json`)
  const visitor = await visitorOf(baseUrl, description, newName)
  const content = documentOf(description, guidesFor(description, { baseUrl, apiKey: visitor.apiKey }), {
    baseUrl,
    ...visitor,
  })
  document.querySelector('#reference')!.replaceChildren()
  document.querySelector('#skip')!.addEventListener('click', skipToText)
  createApiReference('#reference', {
    content,
    slug: 'api',
    theme: 'none',
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: 'never',
    documentDownloadType: 'none',
    persistAuth: false,
    searchHotKey: 'k',
    defaultOpenFirstTag: false,
    modelsSectionLabel: 'Objects',
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

/** The list at the side has dozens of links: whoever comes by keyboard goes past it, to what stands at the window's top. */
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
