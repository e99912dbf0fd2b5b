import type { BrowserContext } from 'playwright-core'
import { builtPage } from '../support/browser.ts'

/** Serves shop and console of the build in a browser: the separately compiled cloud at `base` has no pages. */
export async function servePages(context: BrowserContext, base: string): Promise<void> {
  const rooms = { shop: await builtPage('cloud', 'shop'), console: await builtPage('cloud', 'console') }
  await context.route(
    ({ origin, pathname }) => origin === base && /^\/(shop|console)\//.test(pathname),
    (route) => {
      const { pathname } = new URL(route.request().url())
      const [, room, name] = /^\/(shop|console)\/(.*)$/.exec(pathname) as unknown as [
        string,
        keyof typeof rooms,
        string,
      ]
      const { assets } = rooms[room]
      if (!/^[\w-]+\.(js|css|svg)$/.test(name)) {
        const body = assets.text!('index.html')!.replaceAll('"./', `"/${room}/`)
        return route.fulfill({ contentType: 'text/html', body })
      }
      const { status, headers, body } = assets.file(name, undefined)
      return route.fulfill({ status, headers: { ...headers }, body: Buffer.from(body as Uint8Array) })
    },
  )
}
