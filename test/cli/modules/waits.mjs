await new Promise(() => {});

export const tools = [];
