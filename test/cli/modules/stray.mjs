setTimeout(() => {
  throw new Error('too late');
});
await new Promise((resolve) => setTimeout(resolve, 1000));
