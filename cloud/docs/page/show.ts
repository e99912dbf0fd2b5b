import { createApiReference } from '@scalar/api-reference'
import '@scalar/api-reference/style.css'
import './page.css'
import { otherLanguages } from './languages.ts'
import { documentOf, type Description } from './document.ts'
import { docsFolder, serviceUrl } from './folder.ts'
import { visitorOf } from './visitor.ts'

/** Shows the reference of one subject, in which each call can be tried. */
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

/** The reference leaves buttons that copy without a name, and a list that scrolls out of the keyboard's reach. */
function nameWhatHasNone(): void {
  for (const button of document.querySelectorAll('#reference button[class*="copy-button"]:not([aria-label])'))
    button.ariaLabel = 'Copy'
  for (const list of document.querySelectorAll<HTMLElement>('#reference ul.endpoints:not([tabindex])'))
    list.tabIndex = 0
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
