import { Readable } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { Form } from '../../../protocol/contract/form.ts'
import type { FormRequest } from './read-form.ts'

/** A request that carries a form. Its bytes are taken from the socket's own stream, where there is one. */
export function formRequestOf(c: Context, form: Form): FormRequest {
  const length = c.req.header('Content-Length')
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>
  const hasBody = Number(length ?? 0) > 0 || c.req.header('Transfer-Encoding') !== undefined
  return {
    form,
    contentType: c.req.header('Content-Type'),
    contentLength: Number(length ?? 0),
    body: incoming ? (hasBody ? incoming : null) : bodyOf(c.req.raw),
  }
}

const bodyOf = (request: Request): Readable | null => (request.body ? Readable.fromWeb(request.body) : null)
