/** Where a GPIO socket is: `unix:/run/larder/gpio.sock` or `tcp:127.0.0.1:18990`. */
export type GpioAddress = { path: string } | { host: string; port: number }

/** Reads an address in its text form; `undefined` for anything else. */
export function parseGpioAddress(text: string): GpioAddress | undefined {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length)
    return path === '' ? undefined : { path }
  }
  const match = /^tcp:(.+):(\d{1,5})$/.exec(text)
  const port = Number(match?.[2])
  return match && port <= 65_535 ? { host: match[1]!, port } : undefined
}

export function formatGpioAddress(address: GpioAddress): string {
  return 'path' in address ? `unix:${address.path}` : `tcp:${address.host}:${address.port}`
}
