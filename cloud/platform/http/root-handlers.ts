import { createHash } from 'node:crypto'
import type { CloudContext } from '../context.ts'
import { timestamp } from '../calendar/timestamps.ts'
import { docsPage, docsScript, docsStyle } from './docs-page.ts'
import { reply, type Handlers } from './handler.ts'
import { SERVICE_NAME, SERVICE_VERSION, type OpenApiDocument } from './openapi.ts'

const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page needs nothing but itself. */
const docsPolicy = [
  "default-src 'none'",
  `script-src ${hashSource(docsScript)}`,
  `style-src ${hashSource(docsStyle)}`,
].join('; ')

export function rootHandlers(
  { runtime }: Pick<CloudContext, 'runtime'>,
  document: OpenApiDocument,
): Handlers<'root.index' | 'root.openapi' | 'root.docs'> {
  const page = docsPage(document)
  return {
    'root.index': () =>
      Promise.resolve({
        service: SERVICE_NAME.toLowerCase(),
        version: SERVICE_VERSION,
        status: 'ok',
        time: timestamp(runtime.clock.now()),
      }),
    'root.openapi': () => Promise.resolve({ ...document }),
    'root.docs': () => Promise.resolve(reply(page, { headers: { 'Content-Security-Policy': docsPolicy } })),
  }
}
