import { Agent, request } from 'node:http'

export interface Answered {
  status: number
  body: string
}

/** Calls over one kept-alive connection, without the extra work of `fetch`. */
export function createCaller() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, noDelay: true })
  return {
    post: (url: string, headers: Record<string, string> = {}): Promise<Answered> =>
      new Promise((resolve, reject) => {
        const call = request(url, { agent, method: 'POST', headers }, (response) => {
          let body = ''
          response.setEncoding('utf8')
          response.on('data', (text: string) => (body += text))
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
          response.on('error', reject)
        })
        call.on('error', reject)
        call.end()
      }),
    close: () => agent.destroy(),
  }
}
