import { hash } from 'node:crypto'
import type { Answer } from './answer.ts'

const STYLE =
  'body{font:1rem system-ui,sans-serif;max-width:22rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}a{display:block;margin:.75rem 0;padding:.8rem;border:1px solid;border-radius:.5rem;text-align:center;color:inherit}'
const headers = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
}

const marks: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** Text as HTML, for contents and attributes. */
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (mark) => marks[mark]!)

/** A page without scripts: a heading and HTML. Its links look like buttons. */
export const plainPage = (title: string, html: string, status = 200): Answer<string> => ({
  status,
  headers,
  body: `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${title}</title><style>${STYLE}</style></head><body><main><h1>${title}</h1>${html}</main></body></html>`,
})
