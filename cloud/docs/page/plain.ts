import './plain.css'
import { docsFolder, serviceUrl } from './folder.ts'
import { addSearch } from './search.ts'

/** Addresses of the former single page: `#tag/orders/GET/…`, `#tag/guide-errors`. */
const former = /^#tag\/([^/]+)/.exec(location.hash)?.[1]
const isHome = location.href.split('#')[0]!.replace(/\/?$/, '/') === docsFolder
if (former !== undefined && isHome)
  location.replace(`${docsFolder}${former.startsWith('guide-') ? '' : 'reference-'}${former}${location.hash}`)

addSearch(docsFolder)
void fillIn()

/** Fills in values that depend on the reader: the address of the service, and the demo's key. */
async function fillIn(): Promise<void> {
  const fill = (name: string, value: string): void => {
    for (const place of document.querySelectorAll(`[data-fill="${name}"]`)) place.textContent = value
  }
  fill('base_url', serviceUrl)
  fill('simulator_url', `${location.protocol}//${location.hostname}:8082`)
  if (document.querySelector('meta[name=demo]') === null) return
  try {
    const answer = await fetch(`${serviceUrl}/demo/credentials`)
    const { api_key: key } = (await answer.json()) as { api_key: string | null }
    if (key !== null) fill('api_key', key)
  } catch {
    // The reader enters it.
  }
}
